//! A block of tiles, from input to output: gather and transform, one product a point, transform back and finish.
//!
//! The block is sized so that its transformed values stay in cache; each thread keeps one scratch buffer for it, and nothing grows
//! with the image. A tile's values depend on its own place in its image alone, so blocks may be cut anywhere.

use std::cell::RefCell;
use std::ops::Range;

use super::finish::{Finish, Place};
use super::packed::{CHUNK, Packed};
use super::product::{Operands, product};
use super::{Tile, transform};
use crate::buffer::{Buffer, Pool};
use crate::lanes::{Kernel, Lanes, Portable};
use crate::{cpu, layout, parallel};

/// Elements added to each point's plane, so that the planes do not fall on the same cache sets.
const SKEW: usize = 16;

/// One convolution, ready to be computed block by block. `x` is `[batch][from_h][from_w][stride]`, the output
/// `[batch][to_h][to_w][stride]`.
pub(super) struct WinogradJob<'a> {
    pub packed: &'a Packed,
    pub x: &'a [f32],
    pub batch: usize,
    pub from: [usize; 2],
    pub to: [usize; 2],
    pub dilation: [usize; 2],
    /// Top and left; negative where the pullback of a wide padding crops.
    pub pad: [isize; 2],
    /// The first output row of each row of tiles, and the first output column of each column of tiles.
    pub origins: [Vec<usize>; 2],
    pub finish: Finish<'a>,
}

/// Some of the tiles and some of the chunks of output channels: the work of one task.
struct Part<'a> {
    tiles: Range<usize>,
    chunks: Range<usize>,
    scratch: &'a mut [f32],
}

/// The computation of one part: it must exist, and no other task may compute any of it meanwhile.
struct Compute<'a> {
    job: &'a WinogradJob<'a>,
    part: Part<'a>,
}

impl<L: Lanes> Kernel<L> for Compute<'_> {
    #[inline(always)]
    fn run(self, l: L) {
        // SAFETY: whoever makes a `Compute` promises it.
        unsafe {
            match self.job.packed.tile {
                Tile::F2 => self.job.compute::<L, 4, 2>(l, self.part),
                Tile::F4 => self.job.compute::<L, 6, 4>(l, self.part),
            }
        }
    }
}

/// One tile's values at every point: where those at the first point start, and the elements from one point's to the next's.
struct Planes {
    start: *mut f32,
    step: usize,
}

thread_local! {
    static SCRATCH: RefCell<Option<Buffer<f32>>> = const { RefCell::new(None) };
}

fn with_scratch(len: usize, use_it: impl FnOnce(&mut [f32])) {
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.as_ref().is_none_or(|s| s.len() < len) {
            *scratch = None;
            *scratch = Some(Pool::new(usize::MAX).take(len).expect("memory for the transformed tiles"));
        }
        use_it(&mut scratch.as_mut().expect("just made")[..len]);
    });
}

/// Bytes of transformed input in one block: large enough to use each weight often, small enough to stay in cache.
const BLOCK_BYTES: usize = 4 << 20;
/// Tiles of one block, at most.
const BLOCK_TILES: usize = 48;

impl WinogradJob<'_> {
    /// Computes everything with the instructions in use.
    pub(super) fn run(&self) {
        #[cfg(target_arch = "x86_64")]
        match (cpu::avx512(), cpu::avx2()) {
            (Some(l), _) => return self.run_with(l),
            (_, Some(l)) => return self.run_with(l),
            _ => {}
        }
        self.run_with(Portable);
    }

    /// Computes everything, split over blocks of tiles and, where those are few, over output channels.
    fn run_with<L: Lanes>(&self, l: L) {
        let tiles = self.batch * self.origins[0].len() * self.origins[1].len();
        let chunks = self.packed.chunks();
        if tiles * chunks == 0 {
            return;
        }
        let threads = parallel::threads();
        let tile_bytes = self.packed.tile.points() * layout::stride(self.packed.from_c) * size_of::<f32>();
        let most = (BLOCK_BYTES / tile_bytes.max(1)).clamp(L::ROWS, BLOCK_TILES);
        let blocks = tiles.div_ceil(most).next_multiple_of(threads).min(tiles);
        let groups = (2 * threads).div_ceil(blocks).min(chunks);
        parallel::each(blocks * groups, |task| {
            let (block, group) = (task / groups, task % groups);
            let tiles = block * tiles / blocks..(block + 1) * tiles / blocks;
            let chunks = group * chunks / groups..(group + 1) * chunks / groups;
            with_scratch(self.scratch(tiles.len()), |scratch| {
                // Parts exist and are disjoint, as `Compute` asks.
                l.run(Compute { job: self, part: Part { tiles, chunks, scratch } });
            });
        });
    }

    /// Elements of one point's plane of a block of `tiles`: of the transformed input and of the products; and of one pixel.
    fn planes(&self, tiles: usize) -> [usize; 3] {
        let depth = layout::stride(self.packed.from_c);
        [tiles * depth + SKEW, tiles * CHUNK + SKEW, depth]
    }

    /// Elements of scratch for a block of `tiles`: the planes of all points, a pixel of zeros, and a chunk's bias.
    fn scratch(&self, tiles: usize) -> usize {
        let [v_plane, m_plane, depth] = self.planes(tiles);
        self.packed.tile.points() * (v_plane + m_plane) + depth + CHUNK
    }

    /// The image, first row and first column of a tile.
    fn place(&self, tile: usize) -> (usize, usize, usize) {
        let [rows, columns] = &self.origins;
        let (row, column) = (tile / columns.len(), tile % columns.len());
        (row / rows.len(), rows[row % rows.len()], columns[column])
    }

    /// Computes one part.
    ///
    /// # Safety
    /// The part must exist, and no other task may compute any of it meanwhile.
    #[inline(always)]
    unsafe fn compute<L: Lanes, const N: usize, const M: usize>(&self, l: L, part: Part<'_>) {
        let Part { tiles, chunks, scratch } = part;
        let [v_plane, m_plane, depth] = self.planes(tiles.len());
        let (v, rest) = scratch.split_at_mut(N * N * v_plane);
        let (m, rest) = rest.split_at_mut(N * N * m_plane);
        let (zeros, bias) = rest.split_at_mut(depth);
        zeros.fill(0.0);
        for (i, tile) in tiles.clone().enumerate() {
            let v = Planes { start: v[i * depth..].as_mut_ptr(), step: v_plane };
            // SAFETY: the tile exists, and its pixel of every plane lies in v.
            unsafe { self.gather::<L, N>(l, tile, zeros, v) };
        }
        for chunk in chunks {
            let columns = self.packed.chunk_width(chunk);
            let u = self.packed.chunk(chunk);
            for point in 0..N * N {
                let by = Operands {
                    rows: tiles.len(),
                    columns,
                    depth: self.packed.from_c,
                    a: v[point * v_plane..].as_ptr(),
                    a_stride: depth,
                    u: u[point * columns * self.packed.from_c..].as_ptr(),
                    c: m[point * m_plane..].as_mut_ptr(),
                };
                // SAFETY: a plane of v holds a row of `depth` for each tile, one of m a row of a chunk.
                unsafe { product(l, &by) };
            }
            self.finish.bias(chunk * CHUNK, bias);
            for (i, tile) in tiles.clone().enumerate() {
                let m = Planes { start: m[i * columns..].as_mut_ptr(), step: m_plane };
                // SAFETY: the tile exists and is this task's own; its row of every plane lies in m.
                unsafe { self.scatter::<L, N, M>(l, tile, chunk, bias, m) };
            }
        }
    }

    /// Reads the input under one tile and writes its values at every point.
    ///
    /// # Safety
    /// A pixel must be writable in each of `N * N` planes of `v`.
    #[inline(always)]
    unsafe fn gather<L: Lanes, const N: usize>(&self, l: L, tile: usize, zeros: &[f32], v: Planes) {
        let (image, y, x) = self.place(tile);
        let stride = layout::stride(self.packed.from_c);
        let mut taps = [[zeros.as_ptr(); N]; N];
        for a in 0..N {
            let row = (y + a * self.dilation[0]).wrapping_add_signed(-self.pad[0]);
            for b in 0..N {
                let column = (x + b * self.dilation[1]).wrapping_add_signed(-self.pad[1]);
                if row < self.from[0] && column < self.from[1] {
                    let pixel = (image * self.from[0] + row) * self.from[1] + column;
                    taps[a][b] = self.x[pixel * stride..][..stride].as_ptr();
                    // The same pixel of the tile to the right, which is likely to be next.
                    l.prefetch(taps[a][b].wrapping_add((N - 2) * self.dilation[1] * stride));
                }
            }
        }
        for c in (0..stride).step_by(L::WIDTH) {
            let part = l.part(stride - c);
            // SAFETY: a tap points to a pixel of `stride` channels or to as many zeros; v as the caller says.
            unsafe {
                // Loops, not closures: those would not be compiled for the lanes' instructions.
                let mut half = [[l.splat(0.0); N]; N];
                for b in 0..N {
                    let mut column = [half[0][0]; N];
                    for a in 0..N {
                        column[a] = l.load_part(taps[a][b].add(c), part);
                    }
                    let column = transform::input(l, column);
                    for a in 0..N {
                        half[a][b] = column[a];
                    }
                }
                for a in 0..N {
                    let row = transform::input(l, half[a]);
                    for b in 0..N {
                        l.store_part(v.start.add((a * N + b) * v.step + c), row[b], part);
                    }
                }
            }
        }
    }

    /// Turns one tile's products at every point into its output pixels.
    ///
    /// # Safety
    /// A chunk's width must be readable in each of `N * N` planes of `m`, and no other task may touch this tile and chunk.
    #[inline(always)]
    unsafe fn scatter<L: Lanes, const N: usize, const M: usize>(
        &self,
        l: L,
        tile: usize,
        chunk: usize,
        bias: &[f32],
        m: Planes,
    ) {
        let (image, y, x) = self.place(tile);
        let stride = layout::stride(self.packed.to_c);
        let [dy, dx] = self.dilation;
        let mut place = Place {
            first: ((image * self.to[0] + y) * self.to[1] + x) * stride + chunk * CHUNK,
            down: dy * self.to[1] * stride,
            right: dx * stride,
            rows: M.min((self.to[0] - y).div_ceil(dy)),
            columns: M.min((self.to[1] - x).div_ceil(dx)),
        };
        let width = CHUNK.min(stride - chunk * CHUNK);
        for c in (0..width).step_by(L::WIDTH) {
            let part = l.part(width - c);
            // SAFETY: m as the caller says; rows and columns keep the elements inside the image.
            unsafe {
                let mut half = [[l.splat(0.0); N]; M];
                for b in 0..N {
                    let mut column = [half[0][0]; N];
                    for a in 0..N {
                        column[a] = l.load(m.start.add((a * N + b) * m.step + c));
                    }
                    let column: [L::Vector; M] = transform::output(l, column);
                    for a in 0..M {
                        half[a][b] = column[a];
                    }
                }
                let bias = l.load(bias[c..][..L::WIDTH].as_ptr());
                let mut pixels = [[bias; M]; M];
                for a in 0..M {
                    let row: [L::Vector; M] = transform::output(l, half[a]);
                    for b in 0..M {
                        pixels[a][b] = l.add(row[b], bias);
                    }
                }
                self.finish.store(l, &place, pixels, part);
            }
            place.first += L::WIDTH;
        }
    }
}
