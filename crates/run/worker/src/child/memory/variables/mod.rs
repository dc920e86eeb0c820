//! Which variables an image has: their memory outlives the module and must be zeroed before, and what
//! a launch leaves in it the next one finds.

mod cubin;
mod ptx;

use warpgauge_model::{Image, ImageFormat};

/// Functions of the device runtime that keep nothing of a kernel's data once output is flushed.
const HARMLESS_IMPORTS: [&str; 3] = ["vprintf", "__assertfail", "__assert_fail"];

/// Most variables that are zeroed one by one.
const MAX_VARIABLES: usize = 4096;

/// Variables of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Variables {
    /// Names of those that hold memory of the module's own.
    pub names: Vec<String>,
    /// Names of the constants. A kernel can write them all the same, through their address.
    pub constants: Vec<String>,
    /// Why zeroing those is not enough.
    pub unprovable: Option<String>,
}

impl Variables {
    /// All names.
    pub(crate) fn all(&self) -> impl Iterator<Item = &String> {
        self.names.iter().chain(&self.constants)
    }

    fn unprovable(reason: impl Into<String>) -> Self {
        Self { unprovable: Some(reason.into()), ..Self::default() }
    }
}

/// Finds the variables of an image.
pub(crate) fn variables(image: &Image) -> Variables {
    let found = match image.format {
        ImageFormat::Ptx => ptx::variables(&String::from_utf8_lossy(&image.bytes)),
        ImageFormat::Cubin => cubin::variables(&image.bytes),
        ImageFormat::Fatbin => Variables::unprovable("the variables of a fat binary are not known"),
        ImageFormat::Library => Variables::unprovable("a library's variables are not known"),
    };
    let count = found.all().count();
    if count > MAX_VARIABLES {
        return Variables::unprovable(format!("{count} variables"));
    }
    found
}

/// What of a module, and of the memory that launches have for themselves, is put back before a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restored {
    /// Its variables.
    Variables,
    /// What it declares as constant too, for who looks for anything that could be kept.
    ConstantsToo,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ptx(text: &str) -> Variables {
        variables(&Image { bytes: text.as_bytes().into(), format: ImageFormat::Ptx })
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let fatbin = Image { bytes: [].into(), format: ImageFormat::Fatbin };
        assert!(variables(&fatbin).unprovable.is_some());
        let cubin = Image { bytes: b"\x7fELF rubbish"[..].into(), format: ImageFormat::Cubin };
        assert!(variables(&cubin).unprovable.is_some());
        assert_eq!(ptx(".global .u32 a; .const .u32 b;").all().collect::<Vec<_>>(), ["a", "b"]);
        let many = (0..=MAX_VARIABLES).map(|index| format!(".const .u32 c{index};"));
        assert!(ptx(&many.collect::<String>()).unprovable.is_some());
    }
}
