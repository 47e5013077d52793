//! An enum whose variants each have a row of a table, made from one list.

/// Makes the enum, the list of all its variants and `row()`, so that a variant can't be in one of
/// them and not in the others.
macro_rules! rows {
    ($(#[$of_all:meta])* $name:ident -> $row:ty { $($(#[$of_one:meta])* $variant:ident: $value:expr,)* }) => {
        $(#[$of_all])*
        pub enum $name { $($(#[$of_one])* $variant,)* }

        impl $name {
            /// All variants, in the order of the table.
            pub const ALL: [$name; [$(stringify!($variant)),*].len()] = [$($name::$variant),*];

            /// The table row of this variant.
            pub fn row(self) -> &'static $row {
                match self {
                    $($name::$variant => {
                        const ROW: $row = $value;
                        &ROW
                    })*
                }
            }
        }
    };
}

pub(crate) use rows;
