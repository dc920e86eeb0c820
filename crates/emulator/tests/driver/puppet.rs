//! Processes that carry out commands of a test, one at a time: the test binary starts itself.
//!
//! A command is a line of words; the answer is a line that begins with `=> `, and the name of an
//! error after `!`. So a test with several processes needs no time, only their answers.

use std::collections::HashMap;
use std::ffi::c_void;
use std::io::{BufRead, BufReader, ErrorKind, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use cudarc::driver::{CudaContext, CudaFunction, CudaStream, PushKernelArg, result, sys};
use libloading::Symbol;
use warpgauge_sandbox::device_worker::confine;
use warpgauge_sandbox::enforcement::Enforcement;

use crate::kernels::config;
use crate::setup::{emulator, function, own_context};

/// The directory that the processes share.
pub const DIRECTORY: &str = "WARPGAUGE_EMULATOR_IPC_DIR";

/// Has a process confine itself.
const CONFINED: &str = "WARPGAUGE_TEST_CONFINED";

/// A process, from the test's side.
pub struct Puppet {
    child: Child,
    orders: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Puppet {
    pub fn start(directory: &Path) -> Self {
        Self::start_with(directory, &[])
    }

    /// One that is confined as workers are; of all directories it may write to this one alone.
    pub fn confined(directory: &Path) -> Self {
        Self::start_with(directory, &[(CONFINED, "1")])
    }

    fn start_with(directory: &Path, variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "puppet::plays", "--ignored", "--nocapture"])
            .env(DIRECTORY, directory)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Puppet { child, orders, answers }
    }

    /// Gives a command without waiting for the answer.
    pub fn tell(&mut self, order: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
    }

    /// Waits for the answer to the oldest command.
    pub fn hear(&mut self) -> Result<String, String> {
        let answer = self.answers.find_map(|line| Some(line.unwrap().strip_prefix("=> ")?.into()));
        let answer: String = answer.expect("the process has ended");
        match answer.strip_prefix('!') {
            Some(error) => Err(error.into()),
            None => Ok(answer),
        }
    }

    pub fn ask(&mut self, order: &str) -> Result<String, String> {
        self.tell(order);
        self.hear()
    }

    /// The answer to a command that works.
    #[track_caller]
    pub fn does(&mut self, order: &str) -> String {
        self.ask(order).unwrap_or_else(|error| panic!("{order}: {error}"))
    }

    /// The error of a command that does not.
    #[track_caller]
    pub fn fails(&mut self, order: &str) -> String {
        self.ask(order).expect_err(order)
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets it end in order.
    pub fn end(mut self) {
        self.orders = None;
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        // Both fail if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const SHARE: &str = r"
.version 7.0
.target sm_75
.address_size 64
// p[i] = value + i
.visible .entry put(.param .u64 p, .param .u32 value)
{
    .reg .b32 %r<3>;
    .reg .b64 %a<3>;
    ld.param.u64 %a0, [p];
    ld.param.u32 %r0, [value];
    mov.u32 %r1, %tid.x;
    add.u32 %r0, %r0, %r1;
    mul.wide.u32 %a1, %r1, 4;
    add.u64 %a2, %a0, %a1;
    st.global.u32 [%a2], %r0;
    ret;
}
// to[i] = from[i]
.visible .entry take(.param .u64 to, .param .u64 from)
{
    .reg .b32 %r<3>;
    .reg .b64 %a<4>;
    ld.param.u64 %a0, [to];
    ld.param.u64 %a1, [from];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %a2, %r1, 4;
    add.u64 %a3, %a1, %a2;
    ld.global.u32 %r0, [%a3];
    add.u64 %a3, %a0, %a2;
    st.global.u32 [%a3], %r0;
    ret;
}
";

type Answer = Result<String, result::DriverError>;

fn word(value: impl ToString) -> Answer {
    Ok(value.to_string())
}

fn done(code: sys::CUresult) -> Answer {
    code.result().map(|()| "done".into())
}

fn unhex(text: &str) -> [i8; 64] {
    let digits = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
    std::array::from_fn(|at| digits(at) as i8)
}

fn hex(bytes: &[i8]) -> String {
    bytes.iter().map(|byte| format!("{:02x}", byte.cast_unsigned())).collect()
}

/// A context with a stream and the kernels.
struct Stage {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    put: CudaFunction,
    take: CudaFunction,
}

impl Stage {
    fn new(device: usize) -> Self {
        let context = own_context(device);
        context.bind_to_thread().unwrap();
        let stream = context.new_stream().unwrap();
        let kernel = |name| function(&context, SHARE, name);
        let (put, take) = (kernel("put"), kernel("take"));
        Stage { context, stream, put, take }
    }

    fn put(&self, at: u64, value: u32, count: u32) -> Answer {
        let mut launch = self.stream.launch_builder(&self.put);
        launch.arg(&at).arg(&value);
        unsafe { launch.launch(config(1, count, 0)) }.map(|_| "done".into())
    }

    fn take(&self, from: u64, count: u32) -> Answer {
        let to = unsafe { result::malloc_sync(4 * count as usize) }?;
        let mut launch = self.stream.launch_builder(&self.take);
        launch.arg(&to).arg(&from);
        unsafe { launch.launch(config(1, count, 0)) }?;
        self.stream.synchronize()?;
        let mut values = vec![0u32; count as usize];
        unsafe { result::memcpy_dtoh_sync(&mut values, to) }?;
        unsafe { result::free_sync(to) }?;
        let values: Vec<String> = values.iter().map(u32::to_string).collect();
        word(values.join(" "))
    }
}

/// Holds the stream up until a message comes.
fn stall(stream: &CudaStream) -> Sender<()> {
    let (sender, receiver) = channel::<()>();
    unsafe extern "C" fn wait(data: *mut c_void) {
        // SAFETY: made by `into_raw` below, for this one call.
        let receiver = unsafe { Box::from_raw(data.cast::<Receiver<()>>()) };
        // The process may end before.
        let _ = receiver.recv();
    }
    let data = Box::into_raw(Box::new(receiver)).cast();
    unsafe { sys::cuLaunchHostFunc(stream.cu_stream(), Some(wait), data) }.result().unwrap();
    sender
}

/// The process, from its own side.
struct Player {
    stages: Vec<Stage>,
    current: usize,
    gates: Vec<Sender<()>>,
    events: HashMap<usize, sys::CUevent>,
}

impl Player {
    fn memory(&mut self, order: &[&str]) -> Option<Answer> {
        let number = |at: usize| order[at].parse::<u64>().unwrap();
        let mut address = 0;
        Some(match order[0] {
            "alloc" => unsafe { result::malloc_sync(number(1) as usize) }.and_then(word),
            "pool" => {
                let stream = self.stages[self.current].stream.cu_stream();
                unsafe { result::malloc_async(stream, number(1) as usize) }.and_then(word)
            }
            "managed" => {
                let bytes = number(1) as usize;
                let code = unsafe { sys::cuMemAllocManaged(&mut address, bytes, 1) };
                code.result().and_then(|()| word(address))
            }
            "free" => done(unsafe { sys::cuMemFree_v2(number(1)) }),
            "left" => result::mem_get_info().and_then(|(free, _)| word(free)),
            "export" => {
                let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
                let code = unsafe { sys::cuIpcGetMemHandle(&mut handle, number(1)) };
                code.result().and_then(|()| word(hex(&handle.reserved)))
            }
            "open" => {
                let handle = sys::CUipcMemHandle { reserved: unhex(order[1]) };
                let code = unsafe { sys::cuIpcOpenMemHandle_v2(&mut address, handle, 1) };
                code.result().and_then(|()| word(address))
            }
            "close" => done(unsafe { sys::cuIpcCloseMemHandle(number(1)) }),
            "range" => {
                let mut bytes = 0;
                let at = number(1);
                let code = unsafe { sys::cuMemGetAddressRange_v2(&mut address, &mut bytes, at) };
                code.result().and_then(|()| word(format!("{address} {bytes}")))
            }
            "poke" => {
                let code = unsafe { result::memcpy_htod_sync(number(1), &[number(2) as u8]) };
                code.map(|()| "done".into())
            }
            "peek" => {
                let mut byte = [0u8];
                let code = unsafe { result::memcpy_dtoh_sync(&mut byte, number(1)) };
                code.and_then(|()| word(byte[0]))
            }
            _ => return None,
        })
    }

    fn event(&mut self, order: &[&str]) -> Option<Answer> {
        let number = || order[1].parse::<usize>().unwrap();
        let event = || self.events[&number()];
        let stream = self.stages[self.current].stream.cu_stream();
        let mut made = std::ptr::null_mut();
        let code = match order[0] {
            "event" => unsafe { sys::cuEventCreate(&mut made, number() as u32) },
            "open-event" => {
                let handle = sys::CUipcEventHandle { reserved: unhex(order[1]) };
                unsafe { sys::cuIpcOpenEventHandle(&mut made, handle) }
            }
            "export-event" => {
                let mut handle = sys::CUipcEventHandle { reserved: [0; 64] };
                let code = unsafe { sys::cuIpcGetEventHandle(&mut handle, event()) };
                return Some(code.result().and_then(|()| word(hex(&handle.reserved))));
            }
            "record" => unsafe { sys::cuEventRecord(event(), stream) },
            "wait" => unsafe { sys::cuStreamWaitEvent(stream, event(), 0) },
            "wait-here" => unsafe { sys::cuEventSynchronize(event()) },
            "query" => unsafe { sys::cuEventQuery(event()) },
            "destroy" => unsafe { sys::cuEventDestroy_v2(event()) },
            _ => return None,
        };
        if !made.is_null() {
            self.events.insert(made as usize, made);
            return Some(word(made as usize));
        }
        Some(done(code))
    }

    fn does(&mut self, order: &[&str]) -> Answer {
        let number = |at: usize| order[at].parse::<u64>().unwrap();
        if let Some(answer) = self.memory(order) {
            return answer;
        }
        if let Some(answer) = self.event(order) {
            return answer;
        }
        let stage = &self.stages[self.current];
        match order[0] {
            "put" => stage.put(number(1), number(2) as u32, number(3) as u32),
            "take" => stage.take(number(1), number(2) as u32),
            "sync" => stage.context.synchronize().map(|()| "done".into()),
            "context" => {
                self.stages.push(Stage::new(number(1) as usize));
                self.current = self.stages.len() - 1;
                word(self.current)
            }
            "use" => {
                self.current = number(1) as usize;
                self.stages[self.current].context.bind_to_thread()?;
                word("done")
            }
            "stall" => {
                let gate = stall(&stage.stream);
                self.gates.push(gate);
                word("done")
            }
            "go" => {
                self.gates.clear();
                word("done")
            }
            "sanitize" => extra(|| unsafe { switch("wgEmulatorSetSanitize")(1) }),
            "protect" => extra(|| {
                let set: Symbol<'_, unsafe extern "C" fn(u64, u32) -> u32> =
                    unsafe { emulator().get(b"wgEmulatorSetReadOnly") }.unwrap();
                unsafe { set(number(1), 1) }
            }),
            "report" => word(report()),
            "limit-files" => {
                let limit = libc::rlimit { rlim_cur: number(1), rlim_max: number(1) };
                extra(|| unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }.unsigned_abs())
            }
            "exit" => std::process::exit(0),
            other => panic!("no such command: {other}"),
        }
    }
}

fn switch(name: &str) -> Symbol<'static, unsafe extern "C" fn(u32) -> u32> {
    unsafe { emulator().get(name.as_bytes()) }.unwrap()
}

fn extra(call: impl FnOnce() -> u32) -> Answer {
    assert_eq!(call(), 0);
    word("done")
}

fn report() -> String {
    let take: Symbol<'_, unsafe extern "C" fn(*mut u8, usize) -> usize> =
        unsafe { emulator().get(b"wgEmulatorTakeReport") }.unwrap();
    let mut text = vec![0; 1 << 20];
    let length = unsafe { take(text.as_mut_ptr(), text.len()) };
    String::from_utf8(text[..length].to_vec()).unwrap()
}

/// The driver is loaded and initialised, as it is in a worker, and no memory is shared yet.
fn confine_this_process() {
    emulator();
    let directory = std::env::var_os(DIRECTORY).unwrap();
    let confinement = confine(directory.as_ref(), &[]);
    assert_eq!(confinement.calls, Enforcement::Full);
    assert_eq!(confinement.files, Enforcement::Full, "the tests need Linux 6.12 or later");
    let elsewhere = std::env::temp_dir().join("outside");
    assert_eq!(std::fs::write(elsewhere, "").unwrap_err().kind(), ErrorKind::PermissionDenied);
}

#[test]
#[ignore = "runs in processes that other tests start"]
fn plays() {
    if std::env::var_os(CONFINED).is_some() {
        confine_this_process();
    }
    let stages = vec![Stage::new(0)];
    let (gates, events) = (Vec::new(), HashMap::new());
    let mut player = Player { stages, current: 0, gates, events };
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let answer = player.does(&line.split(' ').collect::<Vec<_>>());
        match answer {
            Ok(answer) => println!("\n=> {answer}"),
            Err(error) => println!("\n=> !{:?}", error.0),
        }
    }
    player.gates.clear();
}
