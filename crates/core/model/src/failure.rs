//! Failures of requests, kernels and runs, as codes that programs compare. The main type is
//! [`FailureCode`].

use crate::codes::codes;

codes! {
    /// Failure of a request, a kernel or its run. Codes are never renamed.
    FailureCode {
        // Errors of driver calls.
        /// An argument of a call is invalid.
        InvalidValue = "invalid_value",
        /// The buffers exceed the device's memory.
        OutOfMemory = "out_of_memory",
        /// The driver is not initialised.
        NotInitialized = "not_initialized",
        /// The driver is shutting down.
        Deinitialized = "deinitialized",
        /// The driver's library is a stub.
        StubLibrary = "stub_library",
        /// The device is busy, or not accessible to this process.
        DeviceUnavailable = "device_unavailable",
        /// There is no device.
        NoDevice = "no_device",
        /// There is no device with that number.
        InvalidDevice = "invalid_device",
        /// The driver cannot load the image.
        InvalidImage = "invalid_image",
        /// The context is not usable.
        InvalidContext = "invalid_context",
        /// The image has no code for this device.
        NoBinaryForGpu = "no_binary_for_gpu",
        /// The device's memory failed.
        EccUncorrectable = "ecc_uncorrectable",
        /// The PTX cannot be assembled.
        InvalidPtx = "invalid_ptx",
        /// A link between devices failed.
        NvlinkUncorrectable = "nvlink_uncorrectable",
        /// The driver's PTX assembler is missing.
        JitCompilerNotFound = "jit_compiler_not_found",
        /// The driver does not support the version of the PTX.
        UnsupportedPtxVersion = "unsupported_ptx_version",
        /// Assembling PTX is disabled.
        JitCompilationDisabled = "jit_compilation_disabled",
        /// The source is malformed.
        InvalidSource = "invalid_source",
        /// The image needs an undefined symbol.
        UnresolvedSymbol = "unresolved_symbol",
        /// A shared object could not be initialised.
        SharedObjectInitFailed = "shared_object_init_failed",
        /// The operating system rejected a call.
        OperatingSystem = "operating_system",
        /// The resource handle is invalid.
        InvalidHandle = "invalid_handle",
        /// The requested name does not exist.
        NotFound = "not_found",
        /// The operation has not ended yet.
        NotReady = "not_ready",
        /// The kernel accessed invalid memory.
        IllegalAddress = "illegal_address",
        /// The launch needs more registers or memory than the device has.
        LaunchOutOfResources = "launch_out_of_resources",
        /// The driver ended the launch.
        LaunchTimeout = "launch_timeout",
        /// The context was destroyed.
        ContextIsDestroyed = "context_is_destroyed",
        /// An assertion of the kernel failed.
        Assert = "assert",
        /// The kernel's stack overflowed.
        HardwareStackError = "hardware_stack_error",
        /// The kernel executed an invalid instruction.
        IllegalInstruction = "illegal_instruction",
        /// The kernel accessed a misaligned address.
        MisalignedAddress = "misaligned_address",
        /// The kernel accessed an address in the wrong space.
        InvalidAddressSpace = "invalid_address_space",
        /// The kernel jumped out of its code.
        InvalidPc = "invalid_pc",
        /// The launch ended abnormally.
        LaunchFailed = "launch_failed",
        /// A loop of launches reached its maximum number of iterations before its condition became
        /// false.
        LoopDidNotEnd = "loop_did_not_end",
        /// The blocks of the cooperative launch do not all fit on the device at once.
        CooperativeLaunchTooLarge = "cooperative_launch_too_large",
        /// The kernel left tensor memory allocated.
        TensorMemoryLeak = "tensor_memory_leak",
        /// The call is not permitted.
        NotPermitted = "not_permitted",
        /// The device or its emulation does not support the operation.
        NotSupported = "not_supported",
        /// The system services that the device needs are not ready.
        SystemNotReady = "system_not_ready",
        /// The driver and the libraries are incompatible.
        DriverMismatch = "driver_mismatch",
        /// The device does not support this cluster size.
        InvalidClusterSize = "invalid_cluster_size",
        /// The driver did not respond in time.
        DriverTimeout = "driver_timeout",
        /// The driver reported an unknown error.
        Unknown = "unknown",
        /// The driver reported another error.
        DriverError = "driver_error",
        // Ends of runs.
        /// The run did not end in time and was stopped.
        Timeout = "timeout",
        /// A whole program ended with an unexpected exit code.
        ExitCode = "exit_code",
        /// A signal ended a whole program.
        EndedBySignal = "ended_by_signal",
        /// A whole program could not be started.
        NotStarted = "not_started",
        /// The worker process ended.
        WorkerDied = "worker_died",
        /// The process that judges sealed launches returned no verdict.
        JudgeLost = "judge_lost",
        /// No worker could be started.
        WorkerUnavailable = "worker_unavailable",
        /// The server shut down.
        ShuttingDown = "shutting_down",
        /// A defect of warpgauge.
        InternalError = "internal_error",
        /// Another profile uses the counters.
        CountersBusy = "counters_busy",
        /// The use of the device cannot be monitored.
        Unmonitored = "unmonitored",
        /// The image and the arguments do not fit in one message to the worker.
        ImageTooLarge = "image_too_large",
        /// The library is not installed, or does not work.
        NoLibrary = "no_library",
        /// A library rejected a call.
        LibraryFailed = "library_failed",
        /// A file of inputs cannot be read.
        InputUnreadable = "input_unreadable",
        /// A file of outputs cannot be written.
        OutputUnwritable = "output_unwritable",
        /// A file of expected outputs cannot be read.
        ExpectedUnreadable = "expected_unreadable",
        // Findings of the verification.
        /// An output differs from its expectation.
        OutputMismatch = "output_mismatch",
        /// Elements of an output were never written.
        OutputUnwritten = "output_unwritten",
        /// An output contains a NaN or an infinity.
        NonFiniteOutput = "non_finite_output",
        /// The kernel changed an input.
        InputModified = "input_modified",
        /// The kernel wrote to memory outside a buffer.
        GuardBandWritten = "guard_band_written",
        /// Equal launches gave different results.
        OutputVariesBetweenTrials = "output_varies_between_trials",
        /// The kernel is correct only for the contract's seed.
        WrongForOtherSeeds = "wrong_for_other_seeds",
        /// The result depends on earlier launches.
        DependsOnHistory = "depends_on_history",
        /// Launches under equal conditions gave different results.
        Nondeterministic = "nondeterministic",
        /// A useless kernel would pass the contract's checks, too.
        WeakContract = "weak_contract",
        /// The kernel is faster than the device's speed of light.
        FasterThanLight = "faster_than_light",
        /// The kernel accessed invalid memory.
        MemoryFault = "memory_fault",
        /// A memory check reported a fault.
        SanitizerFault = "sanitizer_fault",
        /// No timed launch is usable.
        NoValidSamples = "no_valid_samples",
        /// The contract's reference kernel failed.
        ReferenceFailed = "reference_failed",
        // Failures of Python kernels.
        /// The kernel's object could not be created.
        ConstructorFailed = "constructor_failed",
        /// The kernel's inputs could not be created, or its arguments are unknown.
        InputsFailed = "inputs_failed",
        /// A call of the kernel raised an exception.
        CallFailed = "call_failed",
        /// The kernel returned a value that cannot be compared.
        UnusableOutput = "unusable_output",
        /// Gradients were requested, but no input has a gradient.
        NoGradient = "no_gradient",
        /// The kernel's process sent an unexpected message.
        ProtocolViolated = "protocol_violated",
        /// A thread of the kernel's process continued to run while the process had to be stopped.
        NotStopped = "not_stopped",
        // Results of a compilation.
        /// The compiler rejected the source.
        CompilationFailed = "compilation_failed",
        /// A compiler option is not allowed, or the compiler rejected it.
        CompilerOptionRefused = "compiler_option_refused",
        /// The compiler ran out of memory.
        CompilerOutOfMemory = "compiler_out_of_memory",
        /// The compiled image exceeds the size limit.
        CompilerOutputTooLarge = "compiler_output_too_large",
        /// The compiler reported an internal error.
        CompilerFailed = "compiler_failed",
        /// The compiler did not end in time.
        CompilerTimeout = "compiler_timeout",
        /// The compiler exceeded its limit on processor time.
        CompilerCpuLimit = "compiler_cpu_limit",
        /// The compiler wrote a file beyond the size limit.
        CompilerFileLimit = "compiler_file_limit",
        /// The compiler crashed.
        CompilerCrashed = "compiler_crashed",
        /// There are too many compiler options.
        TooManyCompilerOptions = "too_many_compiler_options",
        /// A compiler option is malformed.
        InvalidCompilerOption = "invalid_compiler_option",
        /// A compiler option is unknown.
        UnknownCompilerOption = "unknown_compiler_option",
        /// The request contains no source.
        MissingSource = "missing_source",
        /// The source exceeds the size limit.
        SourceTooLarge = "source_too_large",
        /// The name of the kernel is invalid.
        InvalidKernelName = "invalid_kernel_name",
        /// There are too many name expressions.
        TooManyNameExpressions = "too_many_name_expressions",
        /// The image has no machine code.
        NoMachineCode = "no_machine_code",
        /// The code is for another device.
        WrongArchitecture = "wrong_architecture",
        /// The kernel type is not supported here.
        UnsupportedKernelType = "unsupported_kernel_type",
        /// The request contains no binary.
        MissingBinary = "missing_binary",
        /// The binary cannot be decoded.
        InvalidBinary = "invalid_binary",
        /// The PTX is newer than the driver.
        PtxTooNew = "ptx_too_new",
        /// The cubin is malformed.
        InvalidCubin = "invalid_cubin",
        /// The fatbin is malformed.
        InvalidFatbin = "invalid_fatbin",
        /// The emulated device runs only PTX.
        EmulatorNeedsPtx = "emulator_needs_ptx",
        /// Several kernels match the name.
        AmbiguousKernel = "ambiguous_kernel",
        /// No kernel has this name.
        UnknownKernel = "unknown_kernel",
        /// The code contains no kernel.
        NoKernel = "no_kernel",
        /// The kernel has no compile-time constant with this name.
        UnknownConstant = "unknown_constant",
        /// A compile-time constant of the kernel has no value.
        MissingConstant = "missing_constant",
        /// A decorator of the kernel needs host code, which is not run.
        UnsupportedDecorator = "unsupported_decorator",
        /// The kernel has several configurations, and none is chosen.
        SeveralConfigurations = "several_configurations",
        // Arguments that do not match their parameters.
        /// The numbers of arguments and parameters differ.
        ArgumentCount = "argument_count",
        /// An argument's type differs from its parameter's.
        ArgumentType = "argument_type",
        /// A parameter cannot represent its argument's value.
        ArgumentValue = "argument_value",
        /// A C type is unknown.
        UnknownCType = "unknown_c_type",
        // Bodies that cannot be parsed.
        /// The body is not JSON.
        MalformedJson = "malformed_json",
        /// The body is not YAML.
        MalformedYaml = "malformed_yaml",
        /// The body is not MessagePack.
        MalformedMsgpack = "malformed_msgpack",
        /// The body ends too early.
        TruncatedBody = "truncated_body",
        /// The body nests too deeply.
        TooDeep = "too_deep",
        /// A value exceeds its limit.
        TooLarge = "too_large",
        /// A field is unknown.
        UnknownField = "unknown_field",
        /// A field is missing.
        MissingField = "missing_field",
        /// A field occurs twice.
        DuplicateField = "duplicate_field",
        /// A value has the wrong type.
        WrongType = "wrong_type",
        // Invalid contracts.
        /// A number is out of range.
        OutOfRange = "out_of_range",
        /// A text exceeds its length limit.
        TooLong = "too_long",
        /// The data exceeds the server's limit.
        TooMuchData = "too_much_data",
        /// The arguments and the launch are missing.
        MissingIo = "missing_io",
        /// The code is missing.
        MissingCode = "missing_code",
        /// The launch is missing.
        MissingLaunch = "missing_launch",
        /// The grid is missing.
        MissingGrid = "missing_grid",
        /// The block is missing.
        MissingBlock = "missing_block",
        /// A scalar argument has no value.
        MissingValue = "missing_value",
        /// A tensor argument has no shape and element type.
        MissingTensorSpec = "missing_tensor_spec",
        /// An input tensor has no content.
        MissingContent = "missing_content",
        /// A block has too many threads.
        BlockTooLarge = "block_too_large",
        /// A cluster has too many blocks.
        ClusterTooLarge = "cluster_too_large",
        /// The size of the grid is not a multiple of the cluster size.
        ClusterDoesNotDivideGrid = "cluster_does_not_divide_grid",
        /// An expression cannot be evaluated.
        InvalidExpression = "invalid_expression",
        /// The name of an argument is invalid.
        InvalidName = "invalid_name",
        /// Two arguments have the same name.
        DuplicateName = "duplicate_name",
        /// The shape is invalid.
        InvalidShape = "invalid_shape",
        /// The generated content is invalid.
        InvalidInit = "invalid_init",
        /// The text is not base64.
        InvalidBase64 = "invalid_base64",
        /// The data cannot be decoded.
        InvalidData = "invalid_data",
        /// The element type of the data differs from the tensor's.
        DtypeMismatch = "dtype_mismatch",
        /// The shape of the data differs from the tensor's.
        ShapeMismatch = "shape_mismatch",
        /// The size of the data differs from the tensor's.
        SizeMismatch = "size_mismatch",
        /// The field is not allowed in this place.
        WrongField = "wrong_field",
        /// The fields are mutually exclusive.
        ConflictingFields = "conflicting_fields",
        /// An expectation names an argument that is not an output.
        NotAnOutput = "not_an_output",
        /// There is no tensor with this name.
        UnknownTensor = "unknown_tensor",
        /// There is no output with this name.
        UnknownOutput = "unknown_output",
        /// There is no metric with this name.
        UnknownMetric = "unknown_metric",
        /// A requirement is malformed.
        InvalidRequirement = "invalid_requirement",
        /// No single device meets all requirements.
        DifferentRequirements = "different_requirements",
        /// No server meets the requirements.
        UnmetRequirements = "unmet_requirements",
        /// The tensor arguments of the reference kernel differ from the kernel's.
        ReferenceArgsDiffer = "reference_args_differ",
        /// The reference does not compile.
        ReferenceNotCompiled = "reference_not_compiled",
        /// The reference is correct, but has no times to compare.
        ReferenceNotTimed = "reference_not_timed",
        /// The kernels to compare are missing, or there are too many.
        Candidates = "candidates",
        /// The kernels to compare have different arguments.
        DifferentArguments = "different_arguments",
        /// The name of a candidate is invalid.
        CandidateName = "candidate_name",
        /// A field of a sweep is not a number.
        Expression = "expression",
        /// The sweep has no axes, or too many.
        Axes = "axes",
        /// The name of an axis is invalid.
        AxisName = "axis_name",
        /// A value of an axis is invalid, or the axis has no values.
        AxisValue = "axis_value",
        /// A reference to an axis is malformed, or the axis does not exist.
        AxisReference = "axis_reference",
        /// An axis contains a value twice.
        DuplicateValue = "duplicate_value",
        /// The contract has no reference to an axis.
        UnusedAxis = "unused_axis",
        /// The sweep has too many points.
        TooManyPoints = "too_many_points",
        /// The field is not allowed in a sweep.
        NotInASweep = "not_in_a_sweep",
        /// The service could not evaluate a point.
        Service = "service",
        /// The suite of the gate is invalid.
        InvalidSuite = "invalid_suite",
        /// The baseline's kernel is incorrect.
        NotRight = "not_right",
        // Parameters of a request.
        /// A parameter is malformed.
        InvalidParameter = "invalid_parameter",
        /// A parameter is unknown.
        UnknownParameter = "unknown_parameter",
        /// A parameter occurs twice.
        RepeatedParameter = "repeated_parameter",
        /// The parameters are mutually exclusive.
        ContradictoryParameters = "contradictory_parameters",
        /// The idempotency key is too long, or has characters that are not allowed.
        InvalidIdempotencyKey = "invalid_idempotency_key",
        /// The label is too long, or has characters that are not allowed.
        InvalidLabel = "invalid_label",
        /// Webhooks may not be sent to this address.
        WebhookRefused = "webhook_refused",
        ..
        /// A code of another version, or a code that is composed of others.
        Other(String),
    }
}

impl FailureCode {
    /// Returns the code of a compilation failure of a contract's reference kernel.
    pub fn of_reference(&self) -> Self {
        Self::Other(format!("reference_{self}"))
    }
}

codes! {
    /// Stage in which a run ended early.
    FailureStage {
        /// The kernel did not compile.
        Compile = "compile",
        /// The kernel was being loaded or run.
        Execute = "execute",
        /// The reference was being run, or outputs were being compared.
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
        // A composed code must not equal a known one.
        let known = |code: &FailureCode| FailureCode::ALL.contains(&code.as_str().into());
        assert!(!FailureCode::ALL.iter().map(FailureCode::of_reference).any(|code| known(&code)));
    }
}
