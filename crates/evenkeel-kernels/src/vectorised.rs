//! Plain loops compiled twice: once for any machine, once with AVX2 and FMA switched on, chosen at run time; with `widest` before the
//! `fn` a third time for AVX-512, for loops that are bound by arithmetic.
//!
//! `vectorised! { fn name(arguments) -> Result { body } }` defines `name` with all bodies behind one call. It suits loops the
//! compiler vectorises as well as we would by hand; what needs register blocking is written with intrinsics instead. The compiler
//! neither joins nor reorders operations on floats, so all bodies give the same bytes.

/// Defines a function whose body is compiled for the plain target and for AVX2 + FMA.
macro_rules! vectorised {
    ($(#[$note:meta])* $seen:vis widest fn $name:ident $(<$kind:ident: $bound:path>)? ($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)? $body:block) => {
        $(#[$note])*
        $seen fn $name $(<$kind: $bound>)? ($($arg: $type),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                fn widest $(<$kind: $bound>)? ($($arg: $type),*) $(-> $out)? $body
                if $crate::cpu::avx512().is_some() {
                    // SAFETY: the proof says that the machine has these features.
                    return unsafe { widest($($arg),*) };
                }
            }
            $crate::vectorised::vectorised! {
                fn narrower $(<$kind: $bound>)? ($($arg: $type),*) $(-> $out)? $body
            }
            narrower($($arg),*)
        }
    };
    ($(#[$note:meta])* $seen:vis fn $name:ident $(<$kind:ident: $bound:path>)? ($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)? $body:block) => {
        $(#[$note])*
        $seen fn $name $(<$kind: $bound>)? ($($arg: $type),*) $(-> $out)? {
            #[inline(always)]
            fn plain $(<$kind: $bound>)? ($($arg: $type),*) $(-> $out)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn wide $(<$kind: $bound>)? ($($arg: $type),*) $(-> $out)? {
                    plain($($arg),*)
                }
                if $crate::cpu::avx2().is_some() {
                    // SAFETY: the proof says that the machine has both features.
                    return unsafe { wide($($arg),*) };
                }
            }
            plain($($arg),*)
        }
    };
}

pub(crate) use vectorised;
