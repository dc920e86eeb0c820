//! Graphs: nodes with dependencies, and the executable form that a stream runs.
//!
//! A launch of a graph is one task of its stream. The task runs the nodes one after another in an
//! order that respects the dependencies. Each node already uses all cores.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::context::Core;
use super::registry::{fresh, registry};
use super::task::Task;
use crate::driver::c::abi::Handle;
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::lock;

/// A graph that can still change.
#[derive(Default)]
pub struct Graph {
    state: Mutex<State>,
    allocations: Arc<Allocations>,
}

#[derive(Clone, Default)]
struct State {
    nodes: Vec<Node>,
}

/// A node: its task, and the nodes of the same graph that precede it.
#[derive(Clone)]
pub struct Node {
    pub handle: Handle,
    pub task: Task,
    pub after: BTreeSet<Handle>,
}

/// A node, and the graph that contains it.
pub struct NodeId {
    pub graph: Handle,
}

/// Memory that was allocated while a graph was captured. It stays at a fixed address while any
/// object made from the capture exists, so that every replay can use it.
#[derive(Default)]
struct Allocations(Mutex<Vec<u64>>);

impl Drop for Allocations {
    fn drop(&mut self) {
        let Ok(registry) = registry() else { return };
        for base in std::mem::take(&mut *lock(&self.0)) {
            // If its context is destroyed, the memory is already released.
            let _ = registry.ledger.release(base);
        }
    }
}

/// Maximum number of nodes of a graph, to bound its memory.
const MAX_NODES: usize = 1 << 20;

impl Graph {
    /// Adds a node and returns its handle.
    pub fn add(&self, own: Handle, task: Task, after: &[Handle]) -> Res<Handle> {
        let mut state = lock(&self.state);
        if state.nodes.len() >= MAX_NODES {
            return Err(Code::OUT_OF_MEMORY);
        }
        let after: BTreeSet<Handle> = after.iter().copied().collect();
        state.require(after.iter())?;
        let handle = fresh();
        registry()?.nodes.insert_as(handle, Arc::new(NodeId { graph: own }));
        state.nodes.push(Node { handle, task, after });
        Ok(handle)
    }

    /// Adds dependencies: pairs of (earlier, later).
    pub fn connect(&self, edges: &[(Handle, Handle)]) -> Res {
        let mut state = lock(&self.state);
        state.require(edges.iter().flat_map(|(from, to)| [from, to]))?;
        let mut changed = state.clone();
        for (from, to) in edges {
            let node = changed.nodes.iter_mut().find(|node| node.handle == *to);
            if from == to || !node.is_some_and(|node| node.after.insert(*from)) {
                return Err(Code::INVALID_VALUE);
            }
        }
        *state = changed;
        Ok(())
    }

    pub fn own_allocation(&self, base: u64) {
        lock(&self.allocations.0).push(base);
    }

    pub fn nodes(&self) -> Vec<Node> {
        lock(&self.state).nodes.clone()
    }

    pub fn node(&self, handle: Handle) -> Res<Node> {
        let state = lock(&self.state);
        state.nodes.iter().find(|node| node.handle == handle).cloned().ok_or(Code::INVALID_VALUE)
    }

    /// Returns whether every node is one of `ends` or precedes one of them.
    pub fn all_before(&self, ends: &[Handle]) -> bool {
        let state = lock(&self.state);
        let after: HashMap<Handle, &BTreeSet<Handle>> =
            state.nodes.iter().map(|node| (node.handle, &node.after)).collect();
        let mut seen: HashSet<Handle> = HashSet::new();
        let mut open: Vec<Handle> = ends.to_vec();
        while let Some(next) = open.pop() {
            if seen.insert(next)
                && let Some(after) = after.get(&next)
            {
                open.extend(after.iter());
            }
        }
        state.nodes.iter().all(|node| seen.contains(&node.handle))
    }

    /// Returns a copy of the graph. Its nodes have new handles.
    pub fn copy(&self, own: Handle) -> Res<Graph> {
        let nodes = self.nodes();
        let renamed: HashMap<Handle, Handle> =
            nodes.iter().map(|node| (node.handle, fresh())).collect();
        let rename = |handle: &Handle| renamed.get(handle).copied();
        let copies = nodes.iter().filter_map(|node| {
            let after = node.after.iter().filter_map(rename).collect();
            Some(Node { handle: rename(&node.handle)?, task: node.task.clone(), after })
        });
        let state = Mutex::new(State { nodes: copies.collect() });
        for handle in renamed.values() {
            registry()?.nodes.insert_as(*handle, Arc::new(NodeId { graph: own }));
        }
        Ok(Graph { state, allocations: self.allocations.clone() })
    }

    /// Returns the executable form of the graph: the nodes in an order that respects the
    /// dependencies.
    pub fn plan(&self) -> Res<Plan> {
        let state = lock(&self.state);
        let mut waiting: HashMap<Handle, usize> = HashMap::new();
        let mut then: HashMap<Handle, Vec<usize>> = HashMap::new();
        for (index, node) in state.nodes.iter().enumerate() {
            waiting.insert(node.handle, node.after.len());
            for before in &node.after {
                then.entry(*before).or_default().push(index);
            }
        }
        let free = |(index, node): (usize, &Node)| node.after.is_empty().then_some(index);
        let mut ready: BTreeSet<usize> = state.nodes.iter().enumerate().filter_map(free).collect();
        let mut steps = Vec::with_capacity(state.nodes.len());
        while let Some(index) = ready.pop_first() {
            let node = &state.nodes[index];
            steps.push((node.handle, node.task.clone()));
            for &next in then.get(&node.handle).into_iter().flatten() {
                if let Some(left) = waiting.get_mut(&state.nodes[next].handle) {
                    *left -= 1;
                    if *left == 0 {
                        ready.insert(next);
                    }
                }
            }
        }
        if steps.len() < state.nodes.len() {
            // A cycle keeps some nodes from ever becoming ready.
            return Err(Code::INVALID_VALUE);
        }
        Ok(Plan { steps, _allocations: self.allocations.clone() })
    }
}

impl State {
    fn require<'a>(&self, mut handles: impl Iterator<Item = &'a Handle>) -> Res {
        let known: HashSet<Handle> = self.nodes.iter().map(|node| node.handle).collect();
        if handles.all(|handle| known.contains(handle)) { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }
}

/// The steps of a graph launch.
#[derive(Clone)]
pub struct Plan {
    pub steps: Vec<(Handle, Task)>,
    _allocations: Arc<Allocations>,
}

impl Plan {
    /// Runs all nodes. The first error ends the run.
    pub fn run(&self, core: &Arc<Core>) -> Res {
        self.steps.iter().try_for_each(|(_, task)| task.run(core))
    }
}

/// An instantiated graph (`CUgraphExec`).
pub struct Exec {
    pub context: Handle,
    pub flags: u64,
    plan: Mutex<Arc<Plan>>,
    /// Whether the graph was uploaded. The value has no effect.
    pub uploaded: AtomicBool,
}

impl Exec {
    pub fn new(context: Handle, flags: u64, plan: Plan) -> Self {
        let uploaded = AtomicBool::new(false);
        Exec { context, flags, plan: Mutex::new(Arc::new(plan)), uploaded }
    }

    /// Returns the plan for later launches. Earlier launches keep their plans.
    pub fn plan(&self) -> Arc<Plan> {
        lock(&self.plan).clone()
    }

    /// Replaces the task of a node by one of the same kind.
    pub fn set(&self, node: Handle, task: Task) -> Res {
        let mut plan = lock(&self.plan);
        let mut changed = Plan::clone(&plan);
        let step = changed.steps.iter_mut().find(|step| step.0 == node);
        let step = step.ok_or(Code::INVALID_VALUE)?;
        if kind(&step.1) != kind(&task) {
            return Err(Code::INVALID_VALUE);
        }
        step.1 = task;
        *plan = Arc::new(changed);
        Ok(())
    }

    /// Replaces the parameters of all nodes by those of a graph of the same shape. Returns false if
    /// the shape differs.
    pub fn update(&self, from: Plan) -> bool {
        let mut plan = lock(&self.plan);
        let same = plan.steps.len() == from.steps.len()
            && plan.steps.iter().zip(&from.steps).all(|(old, new)| kind(&old.1) == kind(&new.1));
        if same {
            let tasks = from.steps.into_iter().map(|step| step.1);
            let handles = plan.steps.iter().map(|step| step.0);
            let steps = handles.zip(tasks).collect();
            *plan = Arc::new(Plan { steps, _allocations: from._allocations });
        }
        same
    }

    pub fn upload(&self) {
        self.uploaded.store(true, Ordering::Release);
    }
}

/// Returns the `CUgraphNodeType` of a task.
pub fn kind(task: &Task) -> u32 {
    match task {
        Task::Kernel(_) => 0,
        Task::Copy(_) | Task::Staged { .. } => 1,
        Task::Fill(_) => 2,
        Task::Host { .. } | Task::Callback { .. } => 3,
        Task::Graph(_) => 4,
        Task::Empty | Task::Wait(_) => 5,
        Task::Await(_) => 6,
        Task::Record(_) => 7,
        Task::Free { .. } => 11,
    }
}
