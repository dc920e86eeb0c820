//! State for reading hardware counters that outlives a job: the library, plans, and the session.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;

use warpgauge_device::cupti::{CounterPlan, Cupti, CuptiError, CuptiSession, counter_availability};
use warpgauge_device::{Context, Module};

/// Maximum number of plans kept: callers use few sets of metrics.
const PLANS: usize = 32;

/// Maximum number of modules kept for a session. With more, the session is ended.
const MODULES: usize = 16;

/// State for reading hardware counters. It outlives a job.
pub(crate) struct Counters {
    candidates: Vec<PathBuf>,
    ordinal: u32,
    pub unit: Option<Unit>,
    /// Why this process cannot read counters.
    refused: Option<CuptiError>,
}

/// CUPTI on one device, with the state that is kept between jobs.
pub(crate) struct Unit {
    pub cupti: Cupti,
    pub chip: String,
    availability: Option<Vec<u8>>,
    /// The most recently used plans, newest first.
    plans: VecDeque<(Vec<String>, Rc<CounterPlan>)>,
    pub session: Option<CuptiSession>,
    /// Modules that the session added instructions to. CUPTI accesses them again later and crashes
    /// if they are unloaded. They are therefore kept until the session ends, with zeroed variables.
    instrumented: Vec<Module>,
}

impl Counters {
    /// Prepares the state without opening CUPTI. `candidates` are paths of CUPTI libraries to try.
    pub(crate) fn new(candidates: Vec<PathBuf>, ordinal: u32) -> Self {
        Self { candidates, ordinal, unit: None, refused: None }
    }

    /// Opens CUPTI, so that the first job does not have to. The first job repeats and reports any
    /// error.
    pub(crate) fn warm_up(&mut self, context: &Context) {
        let _ = self.unit(context);
    }

    /// Returns whether this process keeps other programs of the machine from reading counters.
    pub(crate) fn are_held(&self) -> bool {
        self.unit.as_ref().is_some_and(|unit| unit.session.is_some())
    }

    /// Releases the counters, so that other programs can read them.
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
                    // A busy device is temporary: another process will release it. All other errors
                    // are permanent.
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
        // This improves the plan: without it, a plan may contain metrics that this chip lacks.
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

    /// Ends the session and releases its modules.
    pub(crate) fn close(&mut self) {
        self.session = None;
        self.instrumented.clear();
    }

    /// Keeps the modules of a job if the session added instructions to them.
    pub(crate) fn keep(&mut self, modules: impl Iterator<Item = Module>) {
        if self.session.as_ref().is_some_and(|session| session.plan().is_instrumented()) {
            self.instrumented.extend(modules);
        }
        if self.instrumented.len() > MODULES {
            self.close();
        }
    }

    /// Returns the session for a plan. Closes an open session that is for another plan.
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
