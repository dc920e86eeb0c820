# The session of a fork: the judge's questions about a submission, and the answers.
#
# The judge does not trust these answers, because a submission may change all of this code. The
# judge reads and verifies the memory itself. This code serves submissions that cooperate.


class Refused(Exception):
    """Reason why a question cannot be answered, with a stable code. `log` has the submission's traceback."""

    def __init__(self, code, message, line=None, log=""):
        super().__init__(message)
        self.code, self.message, self.line, self.log = code, message, line, log

    def as_answer(self):
        return {
            "refused": {
                "code": self.code,
                "message": self.message[:MOST_TEXT],
                "line": self.line,
                "log": self.log[-MOST_TEXT:],
            }
        }


# Maximum length of a message and of a traceback in an answer, characters.
MOST_TEXT = 16 << 10

# Maximum number of parameters and buffers of a module: as many as fit into a frame.
MOST_PARAMETERS = 4096


class Runner:
    """Answers the questions about one submission."""

    def __init__(self, given):
        self.given = given
        self.torch = given["torch"]
        self.values = Values(self.torch)
        self.module = self.target = None
        # The device and the prepared batch, if the fork has a device.
        self.device = self.batch = None
        # Arguments of the next call, and results of the last one: the judge reads both in place.
        self.arguments = []
        self.returned = None
        # Calls the target and computes gradients, if gradients are requested.
        self.backward = None
        # The target, while a copy of it is called instead.
        self.kept = None
        # Names of the 16-bit types in which a watched copy computed.
        self.shorter = set()
        # Whether inputs cannot be created with the device as the default, and whether `get_inputs`
        # reuses memory.
        self.inputs_as_written = self.redraws = False
        # Whether the CPU is used instead of a GPU that the source names.
        self.stands_in = False

    def use_device(self):
        """Creates the context. No submitted code has run yet."""
        self.device = self.values.device = Device(self.torch)

    def serve(self):
        write_frame(SESSION, {"confined": True})
        # Freed when memory is exhausted, so that enough is left to report it.
        reserve = bytearray(16 << 20)
        while True:
            asked = read_frame(SESSION)
            try:
                answer = getattr(self, "do_" + asked["do"])(asked)
            except Refused as refused:
                answer = refused.as_answer()
            except MemoryError as error:
                reserve = None
                answer = explained(error, "call_failed").as_answer()
            except BaseException as error:  # Submitted code may raise anything, including SystemExit.
                answer = explained(error, "call_failed").as_answer()
            if isinstance(answer, str):
                # Batches encode their answers while the device computes, because encoding takes
                # long.
                body = f'{answer}, "turn": {asked["turn"]}}}'.encode()
                write_all(SESSION, struct.pack("<I", len(body)) + body)
                continue
            answer["turn"] = asked["turn"]
            sys.stdout.flush()
            sys.stderr.flush()
            write_frame(SESSION, answer)

    def do_nothing(self, asked):
        """Does nothing: the judge measures the duration of a question."""
        return {"done": None}

    def do_open(self, asked):
        self.batch = None
        self.device.open(asked["handle"], asked["bytes"])
        return {"done": None}

    def do_gate(self, asked):
        self.device.gate = Gate(self.torch, self.device, base64.b64decode(asked["image"]))
        return {"gate": self.device.gate.address}

    def do_prepare(self, asked):
        self.batch = self.returned = None
        self.device.forget()
        self.batch = Batch(self.torch, self.values, self.device, asked)
        self.seed(asked["seed"])
        self.device.synchronize()
        return {"done": None}

    def do_relocate(self, asked):
        """Frees unused memory and holds some, so that later calls allocate at other addresses of the device."""
        self.batch = self.returned = self.padding = None
        self.torch.cuda.empty_cache()
        self.device.forget()
        self.device.open(asked["handle"], asked["bytes"])
        self.padding = self.torch.empty(asked["padding"], dtype=self.torch.uint8, device=self.device.place)
        return {"done": None}

    def do_run(self, asked):
        run = self.batch.run_locked if self.batch.locked else self.batch.run
        return run(self.torch, self.values, self.callee().call)

    def do_trace(self, asked):
        try:
            return {"traced": timeline_of(self.torch, lambda: self.do_run(asked))}
        except BaseException as error:
            raise explained(error, "call_failed") from None

    def do_count(self, asked):
        """Makes the calls while the tool around this process profiles them."""
        profiler = self.torch.cuda.profiler
        profiler.start()
        try:
            self.do_run(asked)
        finally:
            profiler.stop()
        return {"done": None}

    def do_times(self, asked):
        return {"times": self.batch.times()}

    def do_function(self, asked):
        run_functions(self, asked)

    def do_load(self, asked):
        self.stand_in_for(asked["source"])
        self.seed(asked["seed"])
        self.module = self.values.module = run_source(asked["source"], self.given)
        self.target = target_of(self.module, asked["entry"], asked["preferred"])
        init = asked["init"]
        init = self.values.made(init, self.values.allocated) if init is not None else init_inputs(self.module)
        on_device = self.constructed(init, asked["seed"])
        self.target.choose(asked["given"])
        return {
            "loaded": {
                "entry": self.target.name,
                "init": self.values.plain(init),
                "has_inputs": callable(self.module.get("get_inputs")),
                "on_device": on_device,
                "stands_in": self.stands_in,
                "parameters": self.parameters(),
            }
        }

    def stand_in_for(self, source):
        """Uses the CPU instead of a GPU from now on, if the source names a GPU and there is none."""
        if self.device is None and "cuda" in source and not self.stands_in:
            self.stands_in = True
            stand_in_for_cuda(self.torch).__enter__()

    def constructed(self, init, seed):
        """Creates the object. Returns whether the device was PyTorch's default device then. If that fails, such
        as with a generator of the CPU or with NumPy, the object is created without a default and moved to the
        device."""
        on_device = self.device is not None
        if on_device:
            try:
                self.seed(seed)
                with self.torch.device(self.device.place):
                    self.target.construct(init)
            except Refused:
                on_device = False
        if not on_device:
            self.seed(seed)
            self.target.construct(init)
        if self.device is not None and isinstance(self.target.model, self.torch.nn.Module):
            try:
                self.target.model.to(self.device.place)
            except BaseException as error:
                raise explained(error, "constructor_failed") from None
        return on_device

    def do_parameters(self, asked):
        if self.device is not None:
            self.device.forget()
        return {"parameters": self.parameters()}

    def parameters(self):
        model = self.target.model
        if not isinstance(model, self.torch.nn.Module):
            return []
        found = [(True, n, p) for n, p in model.named_parameters()]
        found += [(False, n, b) for n, b in model.named_buffers()]
        if len(found) > MOST_PARAMETERS:
            # Omitted parameters would be neither copied nor compared.
            raise Refused(
                "constructor_failed",
                f"the module has {len(found)} parameters and buffers; at most {MOST_PARAMETERS} can be judged",
            )
        return [
            {"name": name, "trained": trained, "tensor": self.values.described(value)}
            for trained, name, value in found
        ]

    def do_allocate(self, asked):
        """Creates arguments, whose content the judge writes. The previous arguments are freed first, so that
        addresses and `id()` recur with other content: a submission that caches by them gives wrong
        results."""
        self.arguments = None
        self.arguments = self.values.made(asked["arguments"], self.values.allocated)
        return {"made": self.values.told_inputs(self.arguments)}

    def do_make_inputs(self, asked):
        """Lets the submission create its arguments. The previous ones are freed first, as in `do_allocate`."""
        self.arguments = None
        self.arguments = self.inputs_of(asked["seed"])
        if self.device is not None:
            self.device.forget()
            self.device.synchronize()
        return {"made": self.values.told_inputs(self.arguments)}

    def do_draw(self, asked):
        """Like `do_make_inputs`, for several seeds, or only for the first one if `get_inputs` reuses memory."""
        seeds = asked["seeds"][:1] if self.redraws else asked["seeds"]
        self.arguments, taken = [], set()
        for seed in seeds:
            drawn = self.inputs_of(seed)
            memory = self.memory_of(drawn)
            if taken & memory:
                self.redraws = True
                self.arguments = [self.inputs_of(seeds[0])]
                break
            taken |= memory
            self.arguments.append(drawn)
        if self.device is not None:
            self.device.forget()
            self.device.synchronize()
        return {"drawn": self.values.told_sets(self.arguments)}

    def memory_of(self, value):
        """Returns the start addresses of the memory of the tensors and arrays in a structure."""
        found = set()

        def leaf(value):
            if isinstance(value, self.torch.Tensor) and value.layout == self.torch.strided:
                found.add(value.untyped_storage().data_ptr())
            elif array_in(value):
                whole = value
                while array_in(whole.base):
                    whole = whole.base
                found.add(whole.ctypes.data)
            return value

        mapped(value, leaf, self.module)
        return found - {0}

    def inputs_of(self, seed):
        self.seed(seed)
        try:
            made = self.module["get_inputs"]() if self.device is None else self.inputs_on_device(seed)
        except BaseException as error:
            raise explained(error, "inputs_failed") from None
        arguments = list(made) if isinstance(made, (list, tuple)) else [made]
        if self.backward is not None:
            if self.device is None:
                arguments += self.backward.drawn()
            else:
                with self.torch.device(self.device.place):
                    arguments += self.backward.drawn()
        return arguments

    def inputs_on_device(self, seed):
        """Creates the submission's inputs with the device as PyTorch's default device. If that raises an
        exception, such as for a generator of the CPU, they are created without a default and moved."""
        if not self.inputs_as_written:
            try:
                with self.torch.device(self.device.place):
                    return self.module["get_inputs"]()
            except Exception:
                self.inputs_as_written = True
        self.seed(seed)
        return self.moved(self.module["get_inputs"]())

    def moved(self, value):
        def leaf(value):
            return value.to(self.device.place) if isinstance(value, self.torch.Tensor) else value

        return mapped(value, leaf, self.module)

    def do_suggest(self, asked):
        """Searches for inputs, if neither the contract nor the submission defines them."""
        place = self.device.place if self.device is not None else None
        return {"suggested": suggestion_for(self.torch, self.target, place)}

    def do_probe(self, asked):
        """Returns the result of a call of a copy of the object, which has no effect on later calls."""
        if asked["arguments"] is None:
            self.do_make_inputs(asked)
            arguments = self.arguments
        elif self.device is None:
            arguments = self.values.made(asked["arguments"], self.values.zeros)
        else:
            with self.torch.device(self.device.place):
                arguments = self.values.made(asked["arguments"], self.values.zeros)
        target = self.copied()
        if self.device is not None:
            self.device.forget()
        with self.torch.no_grad():
            self.returned = target.call(*arguments)
        return {"done": self.values.told(self.returned)}

    def do_aside(self, asked):
        """Makes the following calls with a copy of the object, or with the object itself again."""
        if asked["begin"]:
            self.kept = self.kept or self.target
            self.target = self.kept
            self.target = self.copied()
            if asked["watch"]:
                self.shorter = set()
                self.target.call = watched(self.torch, self.target.call, self.shorter)
        elif self.kept is not None:
            self.target, self.kept = self.kept, None
        if self.backward is not None:
            self.backward.target = self.target
        return {"done": None}

    def do_shorter_types(self, asked):
        return {"shorter_types": sorted(self.shorter)}

    def copied(self):
        target = copy.copy(self.target)
        if target.cls is not None:
            target.model = copy.deepcopy(target.model)
            target.bind()
        return target

    def do_backward(self, asked):
        self.backward = Backward(self.torch, self.values, self.target, asked["upstream"])
        return {"done": None}

    def callee(self):
        return self.backward or self.target

    def do_call(self, asked):
        self.seed(asked["seed"])
        self.returned = None
        with self.torch.no_grad():
            self.returned = self.callee().call(*self.arguments)
        return {"done": self.values.told(self.returned)}

    def seed(self, seed):
        self.torch.manual_seed(seed)
        random = sys.modules.get("random")
        if random is not None:
            random.seed(seed)
        if "np" in self.given:
            self.given["np"].random.seed(seed & 0xFFFFFFFF)


def watched(torch, call, shorter):
    """Returns a function that makes the call and adds the names of the 16-bit types that its operators
    return to `shorter`."""
    names = {torch.float16: "float16", torch.bfloat16: "bfloat16"}

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, arguments=(), options=None):
            returned = operator(*arguments, **(options or {}))
            for value in returned if isinstance(returned, (list, tuple)) else [returned]:
                if isinstance(value, torch.Tensor) and value.dtype in names:
                    shorter.add(names[value.dtype])
            return returned

    def watching(*arguments):
        with Watch():
            return call(*arguments)

    return watching
