//! Collecting: the kernel runs once for each pass, and the counters add up.

use std::ffi::c_void;
use std::rc::Rc;

use super::abi::{
    CounterAvailability, RangeDataInfo, RangeDataInitialize, RangeDataSize, RangeDecode,
    RangeEnable, RangeObject, RangePush, RangeSetConfig, RangeStop, USER_RANGE, USER_REPLAY,
};
use super::error::CuptiError;
use super::host::{Plan, sized};
use super::library::Cupti;
use crate::device::Context;
use crate::profile::Cause;

/// Name of the one range of a pass.
const RANGE: &std::ffi::CStr = c"kernel";

/// Passes beyond the planned ones after which something is wrong.
const SPARE_PASSES: usize = 2;

/// A launch whose counters are read.
pub trait Subject {
    /// Why it cannot be made.
    type Error;

    /// Puts everything in place and holds the device back: what is queued after it and before
    /// [`Self::release`] is to run without gaps that come from the host, which would be counted.
    ///
    /// # Errors
    /// As the driver says.
    fn prepare(&mut self) -> Result<(), Self::Error>;

    /// Queues the launch.
    ///
    /// # Errors
    /// As the driver says.
    fn launch(&mut self) -> Result<(), Self::Error>;

    /// Lets the device go on and waits for the launch.
    ///
    /// # Errors
    /// The launch's own faults.
    fn release(&mut self) -> Result<(), Self::Error>;
}

/// Why a pass was not made.
#[derive(Debug)]
pub enum PassError<E> {
    /// The counters' fault.
    Counters(CuptiError),
    /// The launch's.
    Launch(E),
}

impl<E> From<CuptiError> for PassError<E> {
    fn from(error: CuptiError) -> Self {
        PassError::Counters(error)
    }
}

/// Which counters the device of a context has, as CUPTI's planning takes it. Takes some 70 ms.
///
/// # Errors
/// It cannot be told while somebody collects.
pub fn counter_availability(cupti: Cupti, context: &Context) -> Result<Vec<u8>, CuptiError> {
    const OPERATION: &str = "ask which counters the device has";
    let ask = cupti.functions().counter_availability;
    let mut params = CounterAvailability::new();
    params.context = context.handle();
    cupti.call(OPERATION, ask, &mut params)?;
    let mut image = sized(OPERATION, params.size)?;
    params.image = image.as_mut_ptr();
    cupti.call(OPERATION, ask, &mut params)?;
    image.truncate(params.size);
    Ok(image)
}

/// CUPTI's hold on a context, until it is dropped.
///
/// Its first pass takes 140 ms longer than those after it, so it is worth keeping. One that is not in
/// the middle of a pass keeps no other process from reading counters, and slows nothing down.
pub struct Session {
    cupti: Cupti,
    object: *mut c_void,
    /// What CUPTI was last configured with: it keeps pointers into both.
    configured: Option<(Rc<Plan>, Vec<u8>)>,
    _context: Context,
}

impl Session {
    /// Takes the counters of a context's device.
    ///
    /// # Errors
    /// They are closed to this process, or another one has them.
    pub fn open(cupti: Cupti, context: &Context) -> Result<Self, CuptiError> {
        let mut params = RangeEnable::new();
        params.context = context.handle();
        cupti.call("take the counters", cupti.functions().range_enable, &mut params)?;
        let object = params.object;
        Ok(Self { cupti, object, configured: None, _context: context.clone() })
    }

    /// Begins to collect what `plan` says.
    ///
    /// # Errors
    /// CUPTI does not take the plan.
    pub fn begin(&mut self, plan: &Rc<Plan>) -> Result<Collection<'_>, CuptiError> {
        let mut data = self.counter_data(plan)?;
        let mut params = RangeSetConfig::new();
        params.object = self.object;
        params.config_size = plan.image.len();
        params.config = plan.image.as_ptr();
        params.data_size = data.len();
        params.data = data.as_mut_ptr();
        params.range = USER_RANGE;
        params.replay = USER_REPLAY;
        params.ranges_per_pass = 1;
        params.nesting_levels = 1;
        params.first_nesting_level = 1;
        let configure = self.cupti.functions().range_set_config;
        let configured = self.cupti.call("set the counters up", configure, &mut params);
        // Kept even if it was refused: what CUPTI remembers of it is not known.
        self.configured = Some((Rc::clone(plan), data));
        configured?;
        Ok(Collection { session: self, passes: 0, complete: false })
    }

    /// An image for the counters of one range.
    fn counter_data(&self, plan: &Plan) -> Result<Vec<u8>, CuptiError> {
        const OPERATION: &str = "make room for the counters";
        let functions = self.cupti.functions();
        let names = plan.names();
        let mut size = RangeDataSize::new();
        size.object = self.object;
        size.names = names.as_ptr();
        size.count = names.len();
        size.ranges = 1;
        size.nodes = 1;
        self.cupti.call(OPERATION, functions.range_data_size, &mut size)?;
        let mut data = sized(OPERATION, size.size)?;
        let mut params = RangeDataInitialize::new();
        params.object = self.object;
        params.size = data.len();
        params.data = data.as_mut_ptr();
        self.cupti.call(OPERATION, functions.range_data_initialize, &mut params)?;
        Ok(data)
    }

    fn of_object(&self) -> RangeObject {
        let mut params = RangeObject::new();
        params.object = self.object;
        params
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut params = self.of_object();
        let disable = self.cupti.functions().range_disable;
        // Whoever ends a session that failed cannot do more than try.
        let _ = self.cupti.call("give the counters back", disable, &mut params);
    }
}

/// A collection under way.
pub struct Collection<'s> {
    session: &'s mut Session,
    passes: usize,
    complete: bool,
}

impl Collection<'_> {
    /// Whether every pass was made.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Passes made.
    pub fn passes(&self) -> usize {
        self.passes
    }

    /// Makes one pass.
    ///
    /// # Errors
    /// The counters' or the launch's. No pass can follow one that failed.
    pub fn pass<S: Subject>(&mut self, subject: &mut S) -> Result<(), PassError<S::Error>> {
        let (cupti, functions) = (self.session.cupti, self.session.cupti.functions());
        if self.complete || self.passes > self.planned_passes() + SPARE_PASSES {
            let text = format!("CUPTI wants more than the {} planned", self.planned_passes());
            return Err(CuptiError::local("start a pass", Cause::Unknown, text).into());
        }
        cupti.call("start a pass", functions.range_start, &mut self.session.of_object())?;
        subject.prepare().map_err(PassError::Launch)?;
        let counted = self.count(subject);
        // Whatever happened: the device waits for it.
        let released = subject.release();
        counted?;
        released.map_err(PassError::Launch)?;
        let mut stop = RangeStop::new();
        stop.object = self.session.object;
        cupti.call("end a pass", functions.range_stop, &mut stop)?;
        self.passes += 1;
        self.complete = stop.all_passes_submitted != 0;
        Ok(())
    }

    /// Queues the launch between the marks that counters start and stop at. A second range here
    /// would be more than the counters were set up for, and CUPTI then waits for ever.
    fn count<S: Subject>(&mut self, subject: &mut S) -> Result<(), PassError<S::Error>> {
        let (cupti, functions) = (self.session.cupti, self.session.cupti.functions());
        let mut push = RangePush::new();
        push.object = self.session.object;
        push.name = RANGE.as_ptr();
        cupti.call("start counting", functions.range_push, &mut push)?;
        subject.launch().map_err(PassError::Launch)?;
        cupti.call("stop counting", functions.range_pop, &mut self.session.of_object())?;
        Ok(())
    }

    fn planned_passes(&self) -> usize {
        self.session.configured.as_ref().map_or(0, |(plan, _)| plan.passes)
    }

    /// The value of each of the plan's metrics, in its order; those that are not a number are.
    ///
    /// # Errors
    /// The counters cannot be read, or some were lost.
    pub fn finish(self) -> Result<Vec<f64>, CuptiError> {
        const OPERATION: &str = "read the counters";
        let (cupti, functions) = (self.session.cupti, self.session.cupti.functions());
        let mut decode = RangeDecode::new();
        decode.object = self.session.object;
        cupti.call(OPERATION, functions.range_decode, &mut decode)?;
        let Some((plan, data)) = &self.session.configured else {
            return Err(CuptiError::local(OPERATION, Cause::Unknown, "nothing was collected"));
        };
        let mut info = RangeDataInfo::new();
        info.data = data.as_ptr();
        info.size = data.len();
        cupti.call(OPERATION, functions.range_data_info, &mut info)?;
        if info.ranges != 1 || decode.dropped != 0 {
            let text = format!("{} launches counted, {} lost", info.ranges, decode.dropped);
            return Err(CuptiError::local(OPERATION, Cause::Unknown, text));
        }
        plan.evaluate(data, 0)
    }
}
