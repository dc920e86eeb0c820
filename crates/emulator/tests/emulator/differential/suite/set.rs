//! The list of forms while it is made.

use super::form::{Bound, Class, Form};
use super::value::{Format, Ty};

/// Copies of an instruction with different literals in one kernel.
const LITERALS: usize = 4;

/// All forms, in order.
#[derive(Default)]
pub struct Set {
    pub forms: Vec<Form>,
}

impl Set {
    pub fn push(&mut self, form: Form) {
        self.forms.push(form);
    }

    /// An instruction of one result, with registers and with literals as operands.
    pub fn op(&mut self, sm: u32, inst: &str, out: Ty, ins: &[Ty]) {
        self.form(sm, inst, out, ins, Class::Exact);
        if ins.len() > 1 {
            self.literals(sm, inst, out, ins);
        }
    }

    /// An instruction whose operands are registers only.
    pub fn plain(&mut self, sm: u32, inst: &str, out: Ty, ins: &[Ty]) {
        self.form(sm, inst, out, ins, Class::Exact);
    }

    /// An instruction that approximates.
    pub fn approx(&mut self, sm: u32, inst: &str, out: Ty, ins: &[Ty], bound: Bound) {
        self.form(sm, inst, out, ins, Class::Approx(bound));
    }

    fn form(&mut self, sm: u32, inst: &str, out: Ty, ins: &[Ty], class: Class) {
        let operands: Vec<String> = (0..ins.len()).map(|i| format!("%a{i}")).collect();
        let body = format!("{inst} %o0, {};", operands.join(", "));
        let name = format!("{inst} {}", shape(out, ins));
        self.push(Form::new(name, body).sm(sm).ins(ins).outs(out, 1).class(class));
    }

    /// The operands take turns at being a literal, the last one first.
    fn literals(&mut self, sm: u32, inst: &str, out: Ty, ins: &[Ty]) {
        let able: Vec<usize> = (0..ins.len()).filter(|i| ins[*i].literal(0).is_some()).collect();
        if able.is_empty() {
            return;
        }
        let name = format!("{inst} {} literals", shape(out, ins));
        let mut form = Form::new(name, "").sm(sm).ins(ins).outs(out, LITERALS);
        let mut r = form.random();
        for n in 0..LITERALS {
            let which = able[able.len() - 1 - n % able.len()];
            let operands = ins.iter().enumerate().map(|(i, ty)| match ty.literal(0) {
                Some(_) if i == which => {
                    let v = ty.draw(&mut r, None);
                    ty.literal(v).unwrap_or_default()
                }
                _ => format!("%a{i}"),
            });
            let operands: Vec<String> = operands.collect();
            form.body.push_str(&format!("{inst} %o{n}, {};\n", operands.join(", ")));
        }
        self.push(form);
    }
}

/// The registers of a form, for its name.
fn shape(out: Ty, ins: &[Ty]) -> String {
    let names: Vec<String> = ins.iter().map(|t| format!("{t:?}").to_lowercase()).collect();
    format!("{} <- {}", format!("{out:?}").to_lowercase(), names.join(" "))
}

/// A bound in units in the last place.
pub fn ulps(format: Format, ulp: f64) -> Bound {
    Bound { ulp, relative: 0.0, absolute: 0.0, format }
}

/// A bound relative to the value.
pub fn relative(format: Format, relative: f64) -> Bound {
    Bound { ulp: 0.0, relative, absolute: 0.0, format }
}

/// A bound on the difference itself.
pub fn absolute(format: Format, absolute: f64) -> Bound {
    Bound { ulp: 0.0, relative: 0.0, absolute, format }
}
