//! Proof that outputs were not written, from the fillings that remain after several launches.

use warpgauge_validate::FillTrace;

/// Traces that fillings left in outputs, by buffer.
#[derive(Default)]
pub(crate) struct WriteTraces(Vec<(usize, FillTrace)>);

impl WriteTraces {
    /// Adds a launch's trace in a buffer. Returns whether all launches together prove that elements
    /// of this launch were not written.
    pub(crate) fn add(&mut self, buffer: usize, trace: &FillTrace) -> bool {
        let known = self.0.iter_mut().find(|(index, _)| *index == buffer);
        let all = match known {
            Some((_, all)) => {
                all.add(trace);
                *all
            }
            None => {
                self.0.push((buffer, *trace));
                *trace
            }
        };
        trace.held > 0 && all.is_proof()
    }

    /// Returns the combined trace of all launches in a buffer.
    pub(crate) fn of(&self, buffer: usize) -> Option<&FillTrace> {
        self.0.iter().find(|(index, _)| *index == buffer).map(|(_, trace)| trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_tensor::Dtype;

    #[test]
    fn launches_add_up_by_buffer() {
        let mut traces = WriteTraces::default();
        let written = FillTrace::new(Dtype::Float32);
        assert!(!traces.add(3, &written));
        assert_eq!(traces.of(3).map(|trace| trace.held), Some(0));
        assert!(traces.of(2).is_none());
        let mut left = written;
        left.held = 2;
        assert!(traces.add(3, &left));
        assert!(traces.add(3, &left));
        assert_eq!(traces.of(3).map(|trace| trace.held), Some(4));
        // Earlier traces do not count against a launch that wrote everything.
        assert!(!traces.add(3, &written));
    }
}
