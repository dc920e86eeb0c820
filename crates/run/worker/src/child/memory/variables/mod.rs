//! Lists the variables of a module. Their memory outlives the module, so it must be zeroed before
//! the module is unloaded. A launch can also leave data in variables for the next launch.
//!
//! Source text can hide variables in many ways, so the list does not come from it. On a GPU, it
//! comes from the sections of the linked image (`image`): each byte must belong to a symbol that
//! the driver knows. On the emulated device, it comes from the variables that the emulator's parser
//! allocated.

mod image;

use warpgauge_device::{
    Context, DeviceError, EmulatedVariables, EmulatorControl, Module, VariableRange, link_ptx,
};
use warpgauge_model::{Image, ImageFormat};

use image::Listed;

/// Functions of the device runtime that keep no data of a kernel after its output is flushed.
const HARMLESS_IMPORTS: [&str; 3] = ["vprintf", "__assertfail", "__assert_fail"];

/// Maximum number of variables that are zeroed individually.
const MAX_VARIABLES: usize = 4096;

/// Variables of a module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Variables {
    pub found: Vec<Variable>,
    /// Why `found` may not contain all state of the module.
    pub unprovable: Option<String>,
}

/// A variable of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Variable {
    pub range: VariableRange,
    /// Whether the variable is declared constant. A kernel can still write it through its address.
    pub is_constant: bool,
}

impl Variables {
    /// Finds the variables of a module that was loaded from an image.
    pub(crate) fn of(
        context: &Context,
        emulator: Option<&EmulatorControl>,
        module: &Module,
        image: &Image,
    ) -> Self {
        let found = match (emulator, image.format) {
            (Some(emulator), _) => match emulator.variables(module) {
                Some(told) => emulated(told),
                None => Err("the emulated device does not list them".to_owned()),
            },
            (None, ImageFormat::Ptx) => match link_ptx(context, &image.bytes) {
                Ok(linked) => on_gpu(module, &linked),
                Err(error) => Err(format!("the image does not link: {error}")),
            },
            (None, ImageFormat::Cubin) => on_gpu(module, &image.bytes),
            (None, ImageFormat::Fatbin) => {
                Err("the variables of a fat binary are not known".to_owned())
            }
            (None, ImageFormat::Library) => Err("a library's variables are not known".to_owned()),
        };
        match found.and_then(bounded) {
            Ok(found) => Self { found, unprovable: None },
            Err(reason) => Self { found: Vec::new(), unprovable: Some(reason) },
        }
    }

    /// Returns the ranges of the variables to restore before a launch.
    pub(crate) fn ranges(&self, restored: Restored) -> Vec<VariableRange> {
        let wanted = |one: &&Variable| restored == Restored::ConstantsToo || !one.is_constant;
        self.found.iter().filter(wanted).map(|one| one.range).collect()
    }
}

/// Which variables of a module are restored before a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restored {
    /// Variables that are not declared constant.
    Variables,
    /// Also variables that are declared constant, so that no state that a kernel could keep is
    /// missed.
    ConstantsToo,
}

/// Returns all variables that the emulated device allocated.
fn emulated(told: EmulatedVariables) -> Result<Vec<Variable>, String> {
    let harmful = |name: &&String| !HARMLESS_IMPORTS.contains(&name.as_str());
    if let Some(name) = told.imports.iter().find(harmful) {
        return Err(uses(name));
    }
    if let Some(variable) = told.variables.iter().find(|variable| variable.managed) {
        return Err(managed(&variable.name));
    }
    let variables = told.variables.into_iter().map(|variable| Variable {
        range: VariableRange { address: variable.address, bytes: variable.bytes },
        is_constant: variable.constant,
    });
    Ok(variables.collect())
}

/// Returns the variables that a linked image lists, at the driver's addresses.
fn on_gpu(module: &Module, linked: &[u8]) -> Result<Vec<Variable>, String> {
    let unasked = |error: DeviceError| error.to_string();
    let mut found = Vec::new();
    for Listed { name, bytes, is_constant } in image::listed(linked)? {
        let Some(range) = module.variable(&name).map_err(unasked)? else {
            return Err(format!("the driver does not report the address of variable {name}"));
        };
        if range.bytes != bytes {
            return Err(format!(
                "variable {name} has {bytes} bytes in the image, and {} according to the driver",
                range.bytes
            ));
        }
        if module.is_managed(range).map_err(unasked)? {
            return Err(managed(&name));
        }
        found.push(Variable { range, is_constant });
    }
    Ok(found)
}

/// Returns the variables, unless there are too many or some overlap.
fn bounded(mut found: Vec<Variable>) -> Result<Vec<Variable>, String> {
    if found.len() > MAX_VARIABLES {
        return Err(format!("there are {} of them", found.len()));
    }
    found.sort_by_key(|one| one.range.address);
    let overlap = found.windows(2).any(|pair| {
        let [one, next] = [pair[0].range, pair[1].range];
        one.address.saturating_add(one.bytes) > next.address
    });
    if overlap { Err("some of them share memory".to_owned()) } else { Ok(found) }
}

fn uses(name: &str) -> String {
    format!("the image uses {name}")
}

fn managed(name: &str) -> String {
    format!("variable {name} is managed memory, which the host can also access")
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_device::EmulatedVariable;

    fn variable(name: &str, address: u64) -> EmulatedVariable {
        EmulatedVariable {
            name: name.to_owned(),
            address,
            bytes: 16,
            constant: name == "constant",
            managed: name == "managed",
        }
    }

    fn told(names: &[&str], imports: &[&str]) -> Result<Vec<Variable>, String> {
        let variables = names.iter().zip(1..).map(|(name, place)| variable(name, 256 * place));
        emulated(EmulatedVariables {
            variables: variables.collect(),
            imports: imports.iter().map(ToString::to_string).collect(),
        })
    }

    #[test]
    fn what_is_managed_or_imported_is_not_all_there_is() {
        assert!(told(&["a"], &["malloc"]).unwrap_err().contains("malloc"));
        assert!(told(&["a", "managed"], &[]).unwrap_err().contains("managed memory"));
        let found = told(&["a", "constant"], &["vprintf"]).unwrap();
        let all = Variables { found, unprovable: None };
        assert_eq!(all.ranges(Restored::Variables).len(), 1);
        assert_eq!(all.ranges(Restored::ConstantsToo).len(), 2);
    }

    #[test]
    fn variables_are_bounded_and_apart() {
        let at = |address: u64| Variable {
            range: VariableRange { address, bytes: 16 },
            is_constant: false,
        };
        assert!(bounded(vec![at(512), at(256)]).is_ok());
        assert!(bounded(vec![at(256), at(264)]).unwrap_err().contains("share"));
        let many = (0..=MAX_VARIABLES as u64).map(|place| at(16 * place));
        assert!(bounded(many.collect()).is_err());
    }
}
