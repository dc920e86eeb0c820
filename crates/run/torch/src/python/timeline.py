# The device's activities during some calls, which PyTorch's profiler records with CUPTI in this
# process. The process could forge them, so they are for information only and affect no verdict.

# Maximum number of listed activities, maximum number of names, and maximum length of a name in
# characters.
MOST_TOLD = 8000
MOST_NAMES = 400
LONGEST_NAME = 500


class Names:
    """Indices of names, so that a frame contains each name once."""

    def __init__(self):
        self.numbers, self.texts = {}, []

    def number(self, name):
        found = self.numbers.get(name)
        if found is None and len(self.texts) < MOST_NAMES:
            found = self.numbers[name] = len(self.texts)
            self.texts.append(name[:LONGEST_NAME])
        return found


def timeline_of(torch, calls):
    """Makes the calls, which wait for the device. Returns the device's activities in order, and totals of the
    calls of CUDA functions, in microseconds."""
    profiler = torch.profiler
    kind = profiler.ProfilerActivity.CUDA
    with profiler.profile(activities=[kind], acc_events=True) as recorded:
        calls()
    names, device, called, left = Names(), [], {}, 0
    on_device = torch.autograd.DeviceType.CUDA
    for event in sorted(recorded.events(), key=lambda event: event.time_range.start):
        begin, took = event.time_range.start, event.time_range.elapsed_us()
        number = names.number(event.name)
        if number is None or (event.device_type == on_device and len(device) == MOST_TOLD):
            left += 1
        elif event.device_type == on_device:
            device.append([number, begin, took])
        else:
            count, total = called.get(number, (0, 0.0))
            called[number] = (count + 1, total + took)
    calls_told = [[number, count, total] for number, (count, total) in called.items()]
    return {"names": names.texts, "device": device, "calls": calls_told, "left": left}
