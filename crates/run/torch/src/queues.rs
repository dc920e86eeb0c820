//! Number of hardware queues of a runner's context.
//!
//! On an H200, creating a context with the driver's eight queues takes 160 to 200 ms, and its end
//! another 80 ms; with two queues it takes 75 ms and 40 ms. Work of one stream uses one queue.
//! Streams that share a queue may wait for each other. A source that could create streams therefore
//! gets the driver's number.

/// Hardware queues of a runner's context (`CUDA_DEVICE_MAX_CONNECTIONS`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Queues {
    /// [`FEW`] queues, for sources that create no streams.
    #[default]
    Few,
    /// The driver's default number of queues.
    All,
}

/// Number of queues for sources that create no streams: for the current stream and PyTorch's own.
const FEW: u8 = 2;

/// Identifiers that contain the word `stream`, and do not create a stream.
const HARMLESS: [&str; 24] = [
    "CUDAStream",
    "CUstream",
    "cudaStreamSynchronize",
    "cudaStream_t",
    "cuda_stream",
    "currentStream",
    "current_stream",
    "default_stream",
    "fstream",
    "getCurrentCUDAStream",
    "getCurrentStream",
    "getDefaultCUDAStream",
    "ifstream",
    "iostream",
    "istream",
    "istringstream",
    "ofstream",
    "ostream",
    "ostringstream",
    "sstream",
    "stream",
    "streaming",
    "stringstream",
    "upstream",
];

impl Queues {
    /// Returns the number of queues that Python sources need: all, if one of their words could
    /// create a stream.
    pub fn of<'a>(sources: impl IntoIterator<Item = &'a str>) -> Self {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let makes = |source: &str| {
            let words = source.split(|letter| !is_word(letter));
            words.filter(|word| has_stream(word)).any(|word| !HARMLESS.contains(&word))
        };
        if sources.into_iter().any(makes) { Self::All } else { Self::Few }
    }

    /// Returns the byte that requests a runner with this number of queues; 0 means the driver's
    /// number.
    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::Few => FEW,
            Self::All => 0,
        }
    }
}

fn has_stream(word: &str) -> bool {
    const STREAM: &[u8] = b"stream";
    word.as_bytes().windows(STREAM.len()).any(|part| part.eq_ignore_ascii_case(STREAM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_that_could_make_streams_get_all_queues() {
        let few = [
            "def forward(self, x):\n    return torch.relu(x)",
            "k<<<g, b, 0, at::cuda::getCurrentCUDAStream()>>>(x);\n#include <sstream>",
            "with torch.cuda.stream(torch.cuda.current_stream()): pass",
            "cudaStream_t stream = 0;",
        ];
        for source in few {
            assert_eq!(Queues::of([source]), Queues::Few, "{source}");
        }
        let all = [
            "self.side = torch.cuda.Stream()",
            "cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);",
            "auto s = at::cuda::getStreamFromPool();",
            "from torch.cuda import Stream as S",
            "k<<<g, b, 0, cudaStreamPerThread>>>(x);",
            "STREAMS = 4",
        ];
        for source in all {
            assert_eq!(Queues::of(["pass", source]), Queues::All, "{source}");
        }
        assert!(HARMLESS.is_sorted());
        assert!(HARMLESS.iter().all(|word| has_stream(word)));
    }
}
