//! Plain loops compiled twice: once for any machine, once with AVX2 and FMA switched on, chosen at run time.
//!
//! `vectorised! { fn name(arguments) -> Result { body } }` defines `name` with both bodies behind one call. It suits loops the
//! compiler vectorises as well as we would by hand; what needs register blocking is written with intrinsics instead.

/// Defines a function whose body is compiled for the plain target and for AVX2 + FMA.
macro_rules! vectorised {
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
