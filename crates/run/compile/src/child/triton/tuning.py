# Kernels with several configurations (`@triton.autotune`). Nothing is timed here: the caller
# chooses a configuration.


def configured(tuner, given, metas, options, wanted):
    """Returns constants and settings of the configuration to compile, or None if one must be chosen."""
    names = {name for config in tuner.configs for name in config.kwargs}
    fixed = names & metas.keys()
    if names and fixed == names:
        # The contract gives all constants that would be tuned.
        return {}, {}
    if fixed:
        raise Refused(
            "conflicting_fields",
            f"{', '.join(sorted(fixed))} are tuned by @triton.autotune: leave them out of the "
            f"contract, or give all of {', '.join(sorted(names))} to tune nothing",
        )
    tuned = ("num_warps", "num_stages", "num_ctas", "maxnreg")
    given_too = ", ".join(name for name in tuned if name in options)
    if given_too:
        raise Refused(
            "conflicting_fields",
            f"{given_too} of io.launch: @triton.autotune chooses them; leave them out",
        )
    if wanted is None and len(tuner.configs) > 1:
        return None
    if (wanted or 0) >= len(tuner.configs):
        raise Refused(
            "out_of_range",
            f"metadata.configuration is {wanted}; the kernel has {len(tuner.configs)} "
            "configurations, counted from 0",
        )
    config = tuner.configs[wanted or 0]
    if getattr(config, "ir_override", None) is not None:
        raise Refused("unsupported_decorator", "ir_override reads files, which are not available")
    if config.pre_hook is not None:
        run_hook(config.pre_hook, {**given, **metas, **config.all_kwargs()})
    launch = {key: value for key, value in config.all_kwargs().items() if key not in config.kwargs}
    return config.kwargs, launch


def tunable(tuner, given, metas):
    tuner.nargs = dict(given)
    kept = tuner.prune_configs(dict(metas))
    listed = [index for index, config in enumerate(tuner.configs) if any(config is k for k in kept)]
    zeroed = list(tuner.reset_to_zero)
    if tuner.user_defined_pre_hook:
        run_hook(tuner.pre_hook, dict(given))
        zeroed += [name for name, value in given.items() if getattr(value, "zeroed", False)]
    plain = (bool, int, float, str)

    def shown(value):
        return value if isinstance(value, plain) else str(value)

    return {
        "configurations": [
            {
                "index": index,
                "meta": {key: shown(value) for key, value in tuner.configs[index].kwargs.items()},
                "num_warps": tuner.configs[index].num_warps,
                "num_stages": tuner.configs[index].num_stages,
                "num_ctas": tuner.configs[index].num_ctas,
                "maxnreg": tuner.configs[index].maxnreg,
            }
            for index in listed
        ],
        "configurations_in_all": len(tuner.configs),
        "reset_to_zero": arguments_named(given, zeroed),
        "restore_value": arguments_named(given, tuner.restore_value),
    }


def arguments_named(given, names):
    """Returns the contract indices of the tensors that are passed for parameters with these names."""
    indices = set()
    for name in names:
        value = given.get(name)
        base = getattr(value, "base", value)
        if isinstance(base, Tensor):
            indices.add(base.index)
    return sorted(indices)


def run_hook(hook, arguments):
    try:
        hook(arguments)
    except Exception as error:
        raise Refused(
            "unsupported_decorator",
            f"a pre_hook of @triton.autotune needs host code that is not run here: {error}",
        ) from None
