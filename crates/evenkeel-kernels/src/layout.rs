//! The channels-last layout of feature maps: `[n][h][w][stride]`, where `stride` is the channel count rounded up to whole
//! vectors of eight.
//!
//! The lanes past the last channel are padding. They hold anything at all, and no kernel lets them touch a real lane.

/// Lanes in one vector, and channels that share one byte of a bit mask.
pub const LANES: usize = 8;

/// Elements from one pixel to the next in a channels-last map of `channels` channels.
pub const fn stride(channels: usize) -> usize {
    channels.div_ceil(LANES) * LANES
}
