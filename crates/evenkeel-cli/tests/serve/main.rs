//! `evenkeel serve` as a program: the same bytes as `evenkeel predict`, logs and alarms on disk, and an end on SIGTERM that loses no request.

mod agree;
mod drain;
mod program;
mod records;
