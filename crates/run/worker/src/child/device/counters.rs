//! What reading hardware counters needs and what outlives a job: the library, plans, and the session.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;

use warpgauge_device::cupti::{CounterPlan, Cupti, CuptiError, CuptiSession, counter_availability};
use warpgauge_device::{Context, Module};

/// Plans that are kept: sets of metrics, of which callers use few.
const PLANS: usize = 32;

/// Modules that are kept for a session; with more it is ended.
const MODULES: usize = 16;

/// What reading counters needs beyond a job.
pub(crate) struct Counters {
    candidates: Vec<PathBuf>,
    ordinal: u32,
    pub unit: Option<Unit>,
    /// Why there will be none in this process.
    refused: Option<CuptiError>,
}

/// CUPTI on a device.
pub(crate) struct Unit {
    pub cupti: Cupti,
    pub chip: String,
    availability: Option<Vec<u8>>,
    /// The last ones used, newest first.
    plans: VecDeque<(Vec<String>, Rc<CounterPlan>)>,
    pub session: Option<CuptiSession>,
    /// Modules that the session added instructions to. CUPTI looks at them again later: it crashes
    /// if they are gone, so they stay, with their variables zeroed, for as long as the session.
    instrumented: Vec<Module>,
}

impl Counters {
    /// `candidates`: where CUPTI may be.
    pub(crate) fn new(candidates: Vec<PathBuf>, ordinal: u32) -> Self {
        Self { candidates, ordinal, unit: None, refused: None }
    }

    /// Opens CUPTI, so that the first job does not have to. What goes wrong goes wrong again then,
    /// and is told.
    pub(crate) fn warm_up(&mut self, context: &Context) {
        let _ = self.unit(context);
    }

    /// Whether no other program of the machine can read counters, because of this one.
    pub(crate) fn are_held(&self) -> bool {
        self.unit.as_ref().is_some_and(|unit| unit.session.is_some())
    }

    /// Gives the counters back.
    pub(crate) fn release(&mut self) {
        if let Some(unit) = &mut self.unit {
            unit.close();
        }
    }

    pub(crate) fn unit(&mut self, context: &Context) -> Result<&mut Unit, CuptiError> {
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        let unit = match self.unit.take() {
            Some(unit) => unit,
            None => match Unit::open(&self.candidates, self.ordinal, context) {
                Ok(unit) => unit,
                Err(error) => {
                    // What another process holds, it gives back; all else stays as it is.
                    self.refused = Some(error.clone()).filter(|error| !error.is_busy());
                    return Err(error);
                }
            },
        };
        Ok(self.unit.insert(unit))
    }
}

impl Unit {
    fn open(libraries: &[PathBuf], ordinal: u32, context: &Context) -> Result<Self, CuptiError> {
        let cupti = Cupti::open(libraries)?;
        cupti.check_device(ordinal)?;
        let chip = cupti.chip(ordinal)?;
        // A help for planning: without it, a plan may name what this very chip lacks.
        let availability = match counter_availability(cupti, context) {
            Err(error) if error.is_busy() => return Err(error),
            other => other.ok(),
        };
        Ok(Self {
            cupti,
            chip,
            availability,
            plans: VecDeque::new(),
            session: None,
            instrumented: Vec::new(),
        })
    }

    pub(crate) fn plan(&mut self, metrics: &[String]) -> Result<Rc<CounterPlan>, CuptiError> {
        let known = self.plans.iter().position(|(names, _)| names == metrics);
        let entry = match known.and_then(|index| self.plans.remove(index)) {
            Some(entry) => entry,
            None => {
                let availability = self.availability.as_deref();
                let plan = CounterPlan::new(self.cupti, &self.chip, availability, metrics)?;
                (metrics.to_vec(), Rc::new(plan))
            }
        };
        let plan = Rc::clone(&entry.1);
        self.plans.push_front(entry);
        self.plans.truncate(PLANS);
        Ok(plan)
    }

    /// Ends the session, and lets go of what it needed.
    pub(crate) fn close(&mut self) {
        self.session = None;
        self.instrumented.clear();
    }

    /// Keeps the modules of a job, if the session has to do with them.
    pub(crate) fn keep(&mut self, modules: impl Iterator<Item = Module>) {
        if self.session.as_ref().is_some_and(|session| session.plan().is_instrumented()) {
            self.instrumented.extend(modules);
        }
        if self.instrumented.len() > MODULES {
            self.close();
        }
    }

    /// The session for a plan; the one that there is, if it is for another, is given up.
    pub(crate) fn session(
        &mut self,
        context: &Context,
        plan: &Rc<CounterPlan>,
    ) -> Result<&mut CuptiSession, CuptiError> {
        let kept = self.session.take_if(|open| Rc::ptr_eq(open.plan(), plan));
        let session = match kept {
            Some(session) => session,
            None => {
                self.close();
                CuptiSession::open(self.cupti, context, Rc::clone(plan))?
            }
        };
        Ok(self.session.insert(session))
    }
}
