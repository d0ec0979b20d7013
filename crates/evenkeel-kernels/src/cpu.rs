//! Which instructions this machine has and which of them the kernels use, read once. A value of type [`Avx2`] or [`Avx512`]
//! proves that its instructions are there, so that a function that needs them can ask for the proof instead of trusting its caller.
//!
//! The widest set the machine has is used. `EVENKEEL_CPU` in the environment selects another: `reference`, `avx2` or `avx512`.
//! On one set the results are the same bytes for any number of threads and any batch; two sets may differ in the last bits.

use std::sync::OnceLock;

/// A set of instructions that kernels are written for, the widest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstructionSet {
    /// What every machine has: the plain loops that the fast kernels answer to.
    Reference,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F, VL, DQ and BW, with AVX2 and FMA.
    Avx512,
}

impl InstructionSet {
    /// Every set.
    pub const ALL: [InstructionSet; 3] =
        [InstructionSet::Reference, InstructionSet::Avx2, InstructionSet::Avx512];

    /// The name that `EVENKEEL_CPU` knows it by.
    pub fn name(self) -> &'static str {
        match self {
            InstructionSet::Reference => "reference",
            InstructionSet::Avx2 => "avx2",
            InstructionSet::Avx512 => "avx512",
        }
    }

    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        self <= widest()
    }
}

/// Proof that this machine has AVX2 and FMA and that kernels may use them.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

/// Proof that this machine has AVX-512 F, VL, DQ and BW, AVX2 and FMA, and that kernels may use them.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

/// The proof, if the set in use has AVX2 and FMA.
pub fn avx2() -> Option<Avx2> {
    (in_use() >= InstructionSet::Avx2).then_some(Avx2(()))
}

/// The proof, if the set in use has AVX-512.
pub fn avx512() -> Option<Avx512> {
    (in_use() >= InstructionSet::Avx512).then_some(Avx512(()))
}

/// The set that kernels use.
///
/// # Panics
/// If `EVENKEEL_CPU` asks for what is not there; [`choice`] says so without.
pub fn in_use() -> InstructionSet {
    static FOUND: OnceLock<InstructionSet> = OnceLock::new();
    *FOUND.get_or_init(|| choice().unwrap_or_else(|wrong| panic!("{wrong}")))
}

/// The set that `EVENKEEL_CPU` asks for, or the widest if it asks for none.
///
/// # Errors
/// What is wrong with the variable and what it may be: it names no set, or one that this machine does not have.
pub fn choice() -> Result<InstructionSet, String> {
    match std::env::var_os("EVENKEEL_CPU") {
        None => Ok(widest()),
        Some(name) if name.is_empty() => Ok(widest()),
        Some(name) => InstructionSet::ALL
            .into_iter()
            .find(|set| name == set.name() && set.is_available())
            .ok_or_else(|| {
                let here = InstructionSet::ALL.map(|set| if set.is_available() { set.name() } else { "" });
                format!("EVENKEEL_CPU is {name:?}; this machine has: {}", here.join(" ").trim_end())
            }),
    }
}

#[cfg(target_arch = "x86_64")]
fn widest() -> InstructionSet {
    macro_rules! has {
        ($($feature:tt)*) => { $(std::is_x86_feature_detected!($feature))&&* };
    }
    match (has!("avx2" "fma"), has!("avx512f" "avx512vl" "avx512dq" "avx512bw")) {
        (true, true) => InstructionSet::Avx512,
        (true, false) => InstructionSet::Avx2,
        _ => InstructionSet::Reference,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn widest() -> InstructionSet {
    InstructionSet::Reference
}

/// The name of the kernels in use, for reports.
pub fn name() -> &'static str {
    match in_use() {
        InstructionSet::Reference => "reference",
        InstructionSet::Avx2 => "avx2+fma",
        InstructionSet::Avx512 => "avx512",
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Runs this crate's tests once more for each other set, in a process of its own, because a set is chosen once a process.
    #[test]
    fn kernels_of_every_instruction_set_pass_these_tests() {
        const THIS: &str = "kernels_of_every_instruction_set_pass_these_tests";
        for set in InstructionSet::ALL.into_iter().filter(|&set| set != in_use()) {
            if !set.is_available() {
                println!("not tested: {}, which this machine does not have", set.name());
                continue;
            }
            let tests = std::env::current_exe().unwrap();
            let run =
                Command::new(tests).args(["--skip", THIS]).env("EVENKEEL_CPU", set.name()).output().unwrap();
            let said = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success(), "the tests fail with {}:\n{said}", set.name());
            assert!(said.contains("test result: ok"), "no tests ran with {}:\n{said}", set.name());
            println!("tested: {}", set.name());
        }
    }

    #[test]
    fn proofs_follow_the_set_in_use() {
        assert_eq!(avx2().is_some(), in_use() >= InstructionSet::Avx2);
        assert_eq!(avx512().is_some(), in_use() == InstructionSet::Avx512);
        assert!(in_use().is_available());
    }
}
