//! What went wrong with a request, a kernel or its run, as codes that programs compare.

use crate::codes::codes;

codes! {
    /// What went wrong with a request, a kernel or its run. Codes are never renamed.
    FailureCode {
        // What the driver says of a call.
        /// A value that a call does not take.
        InvalidValue = "invalid_value",
        /// The buffers do not fit the device's memory.
        OutOfMemory = "out_of_memory",
        /// The driver is not initialised.
        NotInitialized = "not_initialized",
        /// The driver is shutting down.
        Deinitialized = "deinitialized",
        /// The driver's library is a stub.
        StubLibrary = "stub_library",
        /// The device is busy, or closed to this process.
        DeviceUnavailable = "device_unavailable",
        /// There is no device.
        NoDevice = "no_device",
        /// There is no device of that number.
        InvalidDevice = "invalid_device",
        /// An image that the driver cannot load.
        InvalidImage = "invalid_image",
        /// The context is not usable.
        InvalidContext = "invalid_context",
        /// The image holds nothing for this device.
        NoBinaryForGpu = "no_binary_for_gpu",
        /// The device's memory failed.
        EccUncorrectable = "ecc_uncorrectable",
        /// PTX that does not assemble.
        InvalidPtx = "invalid_ptx",
        /// A link between devices failed.
        NvlinkUncorrectable = "nvlink_uncorrectable",
        /// The driver's PTX assembler is missing.
        JitCompilerNotFound = "jit_compiler_not_found",
        /// PTX of a version that the driver does not know.
        UnsupportedPtxVersion = "unsupported_ptx_version",
        /// PTX may not be assembled here.
        JitCompilationDisabled = "jit_compilation_disabled",
        /// A source that cannot be read.
        InvalidSource = "invalid_source",
        /// The image needs a symbol that is nowhere.
        UnresolvedSymbol = "unresolved_symbol",
        /// A shared object did not start.
        SharedObjectInitFailed = "shared_object_init_failed",
        /// The operating system refused a call.
        OperatingSystem = "operating_system",
        /// A handle that stands for nothing.
        InvalidHandle = "invalid_handle",
        /// A name that is not there.
        NotFound = "not_found",
        /// It has not ended yet.
        NotReady = "not_ready",
        /// The kernel accessed memory that is not its own.
        IllegalAddress = "illegal_address",
        /// The launch takes more registers or memory than there is.
        LaunchOutOfResources = "launch_out_of_resources",
        /// The driver ended the launch.
        LaunchTimeout = "launch_timeout",
        /// The context is gone.
        ContextIsDestroyed = "context_is_destroyed",
        /// An assertion of the kernel failed.
        Assert = "assert",
        /// The kernel's stack overflowed.
        HardwareStackError = "hardware_stack_error",
        /// The kernel executed what is no instruction.
        IllegalInstruction = "illegal_instruction",
        /// The kernel accessed an address that is not aligned.
        MisalignedAddress = "misaligned_address",
        /// The kernel accessed an address in the wrong space.
        InvalidAddressSpace = "invalid_address_space",
        /// The kernel jumped out of its code.
        InvalidPc = "invalid_pc",
        /// The launch ended abnormally.
        LaunchFailed = "launch_failed",
        /// A cooperative launch that does not fit the device at once.
        CooperativeLaunchTooLarge = "cooperative_launch_too_large",
        /// The kernel left tensor memory allocated.
        TensorMemoryLeak = "tensor_memory_leak",
        /// The call is not permitted.
        NotPermitted = "not_permitted",
        /// The device or its emulation cannot do it.
        NotSupported = "not_supported",
        /// The system that devices need is not ready.
        SystemNotReady = "system_not_ready",
        /// Driver and libraries do not fit.
        DriverMismatch = "driver_mismatch",
        /// A cluster of a size that the device does not take.
        InvalidClusterSize = "invalid_cluster_size",
        /// The driver did not answer in time.
        DriverTimeout = "driver_timeout",
        /// The driver does not know what went wrong.
        Unknown = "unknown",
        /// A code of the driver that is not listed here.
        DriverError = "driver_error",
        // What becomes of a run.
        /// It did not end in time and was stopped.
        Timeout = "timeout",
        /// A whole program ended with another exit code than it should.
        ExitCode = "exit_code",
        /// A signal ended a whole program.
        EndedBySignal = "ended_by_signal",
        /// A whole program could not be started.
        NotStarted = "not_started",
        /// The worker process ended.
        WorkerDied = "worker_died",
        /// The process that judges sealed launches gave no verdict.
        JudgeLost = "judge_lost",
        /// No worker could be started.
        WorkerUnavailable = "worker_unavailable",
        /// The server shut down.
        ShuttingDown = "shutting_down",
        /// A defect of warpgauge.
        InternalError = "internal_error",
        /// Another profile holds the counters.
        CountersBusy = "counters_busy",
        /// The device's use cannot be monitored.
        Unmonitored = "unmonitored",
        /// Image and arguments do not fit into one message.
        ImageTooLarge = "image_too_large",
        /// There is no such library that works here.
        NoLibrary = "no_library",
        /// A library refused a call.
        LibraryFailed = "library_failed",
        /// A file of inputs cannot be read.
        InputUnreadable = "input_unreadable",
        /// A file of outputs cannot be written.
        OutputUnwritable = "output_unwritable",
        /// A file of expected outputs cannot be read.
        ExpectedUnreadable = "expected_unreadable",
        // What verification finds.
        /// An output differs from its expectation.
        OutputMismatch = "output_mismatch",
        /// Elements of an output were never written.
        OutputUnwritten = "output_unwritten",
        /// An output holds NaN or an infinity.
        NonFiniteOutput = "non_finite_output",
        /// An input was changed.
        InputModified = "input_modified",
        /// Memory beside a buffer was written.
        GuardBandWritten = "guard_band_written",
        /// Equal launches left different results.
        OutputVariesBetweenTrials = "output_varies_between_trials",
        /// Right for the contract's seed only.
        WrongForOtherSeeds = "wrong_for_other_seeds",
        /// The result depends on launches before it.
        DependsOnHistory = "depends_on_history",
        /// Launches under equal conditions leave different results.
        Nondeterministic = "nondeterministic",
        /// What is expected would let a useless kernel pass, too.
        WeakContract = "weak_contract",
        /// Faster than the device can be.
        FasterThanLight = "faster_than_light",
        /// The kernel accessed memory that is not its own, whatever the driver says of it.
        MemoryFault = "memory_fault",
        /// A memory check reported a fault.
        SanitizerFault = "sanitizer_fault",
        /// No timed launch could be used.
        NoValidSamples = "no_valid_samples",
        /// The contract's reference kernel failed.
        ReferenceFailed = "reference_failed",
        // What becomes of a kernel in Python.
        /// Its object could not be made.
        ConstructorFailed = "constructor_failed",
        /// What makes its inputs failed, or nobody knows what it takes.
        InputsFailed = "inputs_failed",
        /// It raised an exception when it was called.
        CallFailed = "call_failed",
        /// It gave what cannot be judged.
        UnusableOutput = "unusable_output",
        /// It was to compute gradients, and there is nothing that has one.
        NoGradient = "no_gradient",
        /// Its process said what it was not asked.
        ProtocolViolated = "protocol_violated",
        /// A thread of it ran while its process had to be stopped.
        NotStopped = "not_stopped",
        // What a compilation says.
        /// The compiler rejects the source.
        CompilationFailed = "compilation_failed",
        /// An option that is not taken, or that the compiler rejects.
        CompilerOptionRefused = "compiler_option_refused",
        /// The compiler ran out of memory.
        CompilerOutOfMemory = "compiler_out_of_memory",
        /// What was built is larger than what is taken.
        CompilerOutputTooLarge = "compiler_output_too_large",
        /// The compiler reports an error of its own.
        CompilerFailed = "compiler_failed",
        /// The compiler did not end in time.
        CompilerTimeout = "compiler_timeout",
        /// The compiler took all of its processor time.
        CompilerCpuLimit = "compiler_cpu_limit",
        /// The compiler wrote a larger file than it may.
        CompilerFileLimit = "compiler_file_limit",
        /// The compiler crashed.
        CompilerCrashed = "compiler_crashed",
        /// More options than are taken.
        TooManyCompilerOptions = "too_many_compiler_options",
        /// An option that cannot be read.
        InvalidCompilerOption = "invalid_compiler_option",
        /// An option that is not known.
        UnknownCompilerOption = "unknown_compiler_option",
        /// There is no source.
        MissingSource = "missing_source",
        /// The source is larger than what is taken.
        SourceTooLarge = "source_too_large",
        /// A name that no kernel can have.
        InvalidKernelName = "invalid_kernel_name",
        /// More name expressions than are taken.
        TooManyNameExpressions = "too_many_name_expressions",
        /// The image holds no machine code.
        NoMachineCode = "no_machine_code",
        /// Code for another device.
        WrongArchitecture = "wrong_architecture",
        /// A kind of kernel that is not served here.
        UnsupportedKernelType = "unsupported_kernel_type",
        /// There is no binary.
        MissingBinary = "missing_binary",
        /// The binary cannot be decoded.
        InvalidBinary = "invalid_binary",
        /// PTX that is newer than the driver.
        PtxTooNew = "ptx_too_new",
        /// A cubin that cannot be read.
        InvalidCubin = "invalid_cubin",
        /// A fatbin that cannot be read.
        InvalidFatbin = "invalid_fatbin",
        /// The emulated device takes PTX only.
        EmulatorNeedsPtx = "emulator_needs_ptx",
        /// Several kernels fit the name.
        AmbiguousKernel = "ambiguous_kernel",
        /// No kernel has the name.
        UnknownKernel = "unknown_kernel",
        /// There is no kernel at all.
        NoKernel = "no_kernel",
        /// A compile-time constant that the kernel does not have.
        UnknownConstant = "unknown_constant",
        /// A compile-time constant of the kernel that nobody gives a value.
        MissingConstant = "missing_constant",
        /// A decorator of a kernel that needs host code, which is not run.
        UnsupportedDecorator = "unsupported_decorator",
        /// A kernel with several configurations to choose from.
        SeveralConfigurations = "several_configurations",
        // Arguments that do not fit their parameters.
        /// More arguments than parameters, or fewer.
        ArgumentCount = "argument_count",
        /// An argument of another type than its parameter.
        ArgumentType = "argument_type",
        /// A value that its parameter cannot hold.
        ArgumentValue = "argument_value",
        /// A type that is not known.
        UnknownCType = "unknown_c_type",
        // Bodies and parameters that cannot be read.
        /// Not JSON.
        MalformedJson = "malformed_json",
        /// Not YAML.
        MalformedYaml = "malformed_yaml",
        /// Not MessagePack.
        MalformedMsgpack = "malformed_msgpack",
        /// The body ends too early.
        TruncatedBody = "truncated_body",
        /// The body nests too deeply.
        TooDeep = "too_deep",
        /// More than is taken.
        TooLarge = "too_large",
        /// A field that there is not.
        UnknownField = "unknown_field",
        /// A field that is not there.
        MissingField = "missing_field",
        /// A field that is there twice.
        DuplicateField = "duplicate_field",
        /// A value of another type.
        WrongType = "wrong_type",
        // Contracts that are not valid.
        /// A number beyond its limits.
        OutOfRange = "out_of_range",
        /// A text that is longer than what is taken.
        TooLong = "too_long",
        /// More data than the server takes.
        TooMuchData = "too_much_data",
        /// There is nothing about arguments and launch.
        MissingIo = "missing_io",
        /// There is no code.
        MissingCode = "missing_code",
        /// There is nothing about the launch.
        MissingLaunch = "missing_launch",
        /// There is no grid.
        MissingGrid = "missing_grid",
        /// There is no block.
        MissingBlock = "missing_block",
        /// A scalar without a value.
        MissingValue = "missing_value",
        /// A tensor without a shape and type.
        MissingTensorSpec = "missing_tensor_spec",
        /// An input without content.
        MissingContent = "missing_content",
        /// A block with too many threads.
        BlockTooLarge = "block_too_large",
        /// A cluster with too many blocks.
        ClusterTooLarge = "cluster_too_large",
        /// A grid that is no multiple of its clusters.
        ClusterDoesNotDivideGrid = "cluster_does_not_divide_grid",
        /// An expression that cannot be evaluated.
        InvalidExpression = "invalid_expression",
        /// A name that an argument cannot have.
        InvalidName = "invalid_name",
        /// A name that two arguments have.
        DuplicateName = "duplicate_name",
        /// A shape that no tensor has.
        InvalidShape = "invalid_shape",
        /// Generated content that cannot be made.
        InvalidInit = "invalid_init",
        /// Not base64.
        InvalidBase64 = "invalid_base64",
        /// Data that cannot be decoded.
        InvalidData = "invalid_data",
        /// Data of another type than their tensor.
        DtypeMismatch = "dtype_mismatch",
        /// Data of another shape than their tensor.
        ShapeMismatch = "shape_mismatch",
        /// Data of another size than their tensor.
        SizeMismatch = "size_mismatch",
        /// A field that does not belong there.
        WrongField = "wrong_field",
        /// Fields that exclude each other.
        ConflictingFields = "conflicting_fields",
        /// An expectation of what is no output.
        NotAnOutput = "not_an_output",
        /// An output that there is not.
        UnknownOutput = "unknown_output",
        /// A metric that there is not.
        UnknownMetric = "unknown_metric",
        /// A requirement that cannot be read.
        InvalidRequirement = "invalid_requirement",
        /// Requirements that no one device meets.
        DifferentRequirements = "different_requirements",
        /// Requirements that nobody here meets.
        UnmetRequirements = "unmet_requirements",
        /// A reference kernel with other arguments than the kernel.
        ReferenceArgsDiffer = "reference_args_differ",
        /// A reference that does not compile.
        ReferenceNotCompiled = "reference_not_compiled",
        /// A reference that is right, and has no times to compare with.
        ReferenceNotTimed = "reference_not_timed",
        /// Neither one kernel nor several to compare, or too many.
        Candidates = "candidates",
        /// Kernels to be compared that take different arguments.
        DifferentArguments = "different_arguments",
        /// A name that no candidate can have.
        CandidateName = "candidate_name",
        /// A field of a sweep that is no number.
        Expression = "expression",
        /// A sweep with no axes, or too many.
        Axes = "axes",
        /// A name that no axis can have.
        AxisName = "axis_name",
        /// A value that no axis can have, or none at all.
        AxisValue = "axis_value",
        /// A reference to an axis that there is not, or that cannot be read.
        AxisReference = "axis_reference",
        /// An axis with a value twice.
        DuplicateValue = "duplicate_value",
        /// An axis that nothing refers to.
        UnusedAxis = "unused_axis",
        /// A sweep with more points than are taken.
        TooManyPoints = "too_many_points",
        /// A field that a sweep does not have.
        NotInASweep = "not_in_a_sweep",
        /// A point that the service could not evaluate.
        Service = "service",
        /// A suite of the gate that is not valid.
        InvalidSuite = "invalid_suite",
        /// A baseline that is not right.
        NotRight = "not_right",
        // Parameters of a request.
        /// A parameter that cannot be read.
        InvalidParameter = "invalid_parameter",
        /// A parameter that there is not.
        UnknownParameter = "unknown_parameter",
        /// A parameter that is there twice.
        RepeatedParameter = "repeated_parameter",
        /// Parameters that exclude each other.
        ContradictoryParameters = "contradictory_parameters",
        /// A key that is too long, or not plain.
        InvalidIdempotencyKey = "invalid_idempotency_key",
        /// A label that is too long, or not plain.
        InvalidLabel = "invalid_label",
        /// An address that webhooks are not sent to.
        WebhookRefused = "webhook_refused",
        ..
        /// A code of another version, or one that is put together of others.
        Other(String),
    }
}

impl FailureCode {
    /// What is wrong with the compilation of a kernel, where that kernel is a contract's reference.
    pub fn of_reference(&self) -> Self {
        Self::Other(format!("reference_{self}"))
    }
}

codes! {
    /// The stage in which a run ended early.
    FailureStage {
        /// The kernel did not compile.
        Compile = "compile",
        /// The kernel was being loaded or run.
        Execute = "execute",
        /// Its reference was being run, or its outputs compared.
        Validate = "validate",
        ..
        /// A stage of another version.
        Other(String),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::check_codes;

    #[test]
    fn codes_have_names_of_their_own_and_unknown_ones_are_kept() {
        check_codes!(FailureCode);
        check_codes!(FailureStage);
    }

    #[test]
    fn a_reference_has_the_codes_of_a_compilation_with_a_prefix() {
        let code = FailureCode::CompilationFailed.of_reference();
        assert_eq!(code.as_str(), "reference_compilation_failed");
        // Nothing that has a meaning of its own comes of it.
        let known = |code: &FailureCode| FailureCode::ALL.contains(&code.as_str().into());
        assert!(!FailureCode::ALL.iter().map(FailureCode::of_reference).any(|code| known(&code)));
    }
}
