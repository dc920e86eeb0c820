# The session of a fork: what the judge asks of a submission, one thing after the other.
#
# The judge does not believe what is said here: a submission may change all of it. What it checks is in
# memory, which it reads itself. This is the way for submissions that want to be evaluated.


class Refused(Exception):
    """It cannot be done, with a code that programs compare. `log` has the submission's traceback."""

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


# Longest message and traceback that are passed on, characters.
MOST_TEXT = 16 << 10

# Most parameters and buffers of a module: as many as a frame has room for.
MOST_PARAMETERS = 4096


class Runner:
    """Serves one submission."""

    def __init__(self, given):
        self.given = given
        self.torch = given["torch"]
        self.values = Values(self.torch)
        self.module = self.target = None
        # Where it has one: the device, and the calls that are made next.
        self.device = self.batch = None
        # Arguments of the next call, and what the last one gave: the judge reads both where they are.
        self.arguments = []
        self.returned = None
        # Where gradients are wanted: what calls in place of the target.
        self.backward = None
        # The target while a copy of it is called in its place.
        self.kept = None

    def use_device(self):
        """Makes the context. No stranger's code has run by then."""
        self.device = self.values.device = Device(self.torch)

    def serve(self):
        write_frame(SESSION, {"confined": True})
        # Freed where memory runs out, so that there is some to say so.
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
            except BaseException as error:  # A stranger's code may raise anything, and exit.
                answer = explained(error, "call_failed").as_answer()
            if isinstance(answer, str):
                # What takes long to write down was written while the device computed.
                body = f'{answer}, "turn": {asked["turn"]}}}'.encode()
                write_all(SESSION, struct.pack("<I", len(body)) + body)
                continue
            answer["turn"] = asked["turn"]
            sys.stdout.flush()
            sys.stderr.flush()
            write_frame(SESSION, answer)

    def do_nothing(self, asked):
        """For the judge to see what asking takes."""
        return {"done": None}

    def do_move(self, asked):
        """Moves the object to the device, where it is a module."""
        model = self.target.model
        if isinstance(model, self.torch.nn.Module):
            try:
                model.to(self.device.place)
            except BaseException as error:
                raise explained(error, "constructor_failed") from None
        return {"done": None}

    def bring_back(self):
        """Parameters that the constructor made on the device: the judge compares and sets them before they go
        there."""
        model = self.target.model
        if self.device is None or not isinstance(model, self.torch.nn.Module):
            return
        held = itertools.chain(model.parameters(), model.buffers())
        if any(value.device.type != "cpu" for value in held):
            try:
                model.to("cpu")
            except BaseException as error:
                raise explained(error, "constructor_failed") from None

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

    def do_run(self, asked):
        run = self.batch.run_locked if self.batch.locked else self.batch.run
        return run(self.torch, self.values, self.callee().call)

    def do_trace(self, asked):
        try:
            return {"traced": timeline_of(self.torch, lambda: self.do_run(asked))}
        except BaseException as error:
            raise explained(error, "call_failed") from None

    def do_count(self, asked):
        """Makes the calls while the tool that is round this process looks at them."""
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
        self.seed(asked["seed"])
        self.module = self.values.module = run_source(asked["source"], self.given)
        self.target = target_of(self.module, asked["entry"], asked["preferred"])
        init = asked["init"]
        init = self.values.made(init, self.values.allocated) if init is not None else init_inputs(self.module)
        self.seed(asked["seed"])
        self.target.construct(init)
        self.bring_back()
        return {
            "loaded": {
                "entry": self.target.name,
                "init": self.values.plain(init),
                "has_inputs": callable(self.module.get("get_inputs")),
                "parameters": self.parameters(),
            }
        }

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
            # Those left out would neither be carried over nor be looked at.
            raise Refused(
                "constructor_failed",
                f"the module has {len(found)} parameters and buffers; at most {MOST_PARAMETERS} are judged",
            )
        return [
            {"name": name, "trained": trained, "tensor": self.values.described(value)}
            for trained, name, value in found
        ]

    def do_allocate(self, asked):
        """Makes arguments, whose content the judge writes."""
        self.arguments = self.values.made(asked["arguments"], self.values.allocated)
        return {"made": self.values.told_inputs(self.arguments)}

    def do_make_inputs(self, asked):
        """Has the submission make its arguments."""
        self.seed(asked["seed"])
        try:
            if self.device is None:
                made = self.module["get_inputs"]()
            else:
                self.device.forget()
                made = self.inputs_on_device(asked["seed"])
                self.device.synchronize()
        except BaseException as error:
            raise explained(error, "inputs_failed") from None
        self.arguments = list(made) if isinstance(made, (list, tuple)) else [made]
        if self.backward is not None:
            if self.device is None:
                self.arguments += self.backward.drawn()
            else:
                with self.torch.device(self.device.place):
                    self.arguments += self.backward.drawn()
                self.device.synchronize()
        return {"made": self.values.told_inputs(self.arguments)}

    def inputs_on_device(self, seed):
        """What the submission makes with the device as PyTorch's default; of one that makes it on the CPU by name, such
        as by a generator of its own, it is moved."""
        try:
            with self.torch.device(self.device.place):
                return self.module["get_inputs"]()
        except (RuntimeError, TypeError) as error:
            if "device type" not in str(error):
                raise
        self.seed(seed)
        return self.moved(self.module["get_inputs"]())

    def moved(self, value):
        def leaf(value):
            return value.to(self.device.place) if isinstance(value, self.torch.Tensor) else value

        return mapped(value, leaf, self.module)

    def do_suggest(self, asked):
        """Looks for inputs where nobody says what they are."""
        place = self.device.place if self.device is not None else None
        return {"suggested": suggestion_for(self.torch, self.target, place)}

    def do_probe(self, asked):
        """What a call returns, before anybody counts calls."""
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
        """Has the calls from here on made by a copy of the object, or by the object itself again."""
        if asked["begin"]:
            self.kept = self.kept or self.target
            self.target = self.kept
            self.target = self.copied()
        elif self.kept is not None:
            self.target, self.kept = self.kept, None
        if self.backward is not None:
            self.backward.target = self.target
        return {"done": None}

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
