//! The command line of evenkeel.

fn main() {}
