import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.time.Duration;
import java.time.Instant;
import warpgauge.client.ApiClient;
import warpgauge.client.ApiException;
import warpgauge.client.api.GateApi;
import warpgauge.client.api.JobsApi;
import warpgauge.client.api.KernelsApi;
import warpgauge.client.api.MachineApi;
import warpgauge.client.model.*;

/** Compiled by eval_java.py against the generated client: evaluates a kernel, and reads every kind of answer. */
public final class EvaluateKernel {
  /** Longest wait for the end of a job. */
  private static final Duration PATIENCE = Duration.ofSeconds(120);

  private final ObjectMapper mapper = ApiClient.createDefaultObjectMapper();
  private final JsonNode document;
  private final KernelsApi kernels;
  private final GateApi gate;
  private final JobsApi jobs;
  private final MachineApi machine;

  private EvaluateKernel(String spec, String server) throws Exception {
    document = mapper.readTree(new File(spec));
    ApiClient client = new ApiClient();
    client.updateBaseUri(server);
    kernels = new KernelsApi(client);
    gate = new GateApi(client);
    jobs = new JobsApi(client);
    machine = new MachineApi(client);
  }

  public static void main(String[] arguments) throws Exception {
    EvaluateKernel check = new EvaluateKernel(arguments[0], arguments[1]);
    double median = check.evaluate();
    check.theRest();
    System.out.println("openapi-generator, Java: median " + median + " ms");
  }

  private static void ensure(boolean holds, Object what) {
    if (!holds) throw new IllegalStateException("not as expected: " + what);
  }

  /** The example of an operation's body, as the client's type. */
  private <T> T example(String path, Class<T> type) throws Exception {
    JsonNode content = document.path("paths").path(path).path("post").path("requestBody").path("content");
    return mapper.treeToValue(content.path("application/json").path("example"), type);
  }

  /** Waits for a report, then leaves the same as a job; returns the median. */
  private double evaluate() throws Exception {
    EvaluateRequest request = example("/evaluate", EvaluateRequest.class);
    EvaluateResponse report = kernels.evaluate(request, null, null, null, null);
    KernelExecResult result = report.getKernelExecResult();
    ensure(result.getCompiled() && result.getCorrectness(), result);
    ensure(report.getDevice().getMemoryBytes() > 0xffff_ffffL, report.getDevice());

    BatchItem item = new BatchItem().kind(JobKind.EVALUATE).request(request).label("java");
    BatchAccepted accepted = jobs.submitJobs(new Batch().addJobsItem(item));
    String id = accepted.getJobs().get(0).getJobId();
    Instant deadline = Instant.now().plus(PATIENCE);
    JobView job = jobs.getJob(id);
    while (job.getState() != JobState.COMPLETED) {
      ensure(Instant.now().isBefore(deadline), job);
      job = jobs.getJob(id);
    }
    ensure(job.getResult().getKernelExecResult().getCorrectness(), job);
    ensure(jobs.getJobState(id).getStatus() == JobState.COMPLETED, id);
    return result.getRuntimeStats().getMedian();
  }

  /** Every other kind of answer, and an error. */
  private void theRest() throws Exception {
    ensure(kernels.compile(example("/compile", CompileRequest.class)).getCompiled(), "/compile");
    EvaluateRequest run = example("/execute", EvaluateRequest.class);
    ensure(!kernels.execute(run, null, null, null, null).getOutputs().isEmpty(), "/execute");
    ensure(kernels.planProfile(example("/profile/plan", EvaluateRequest.class)) != null, "/profile/plan");
    CompareRequest pair = example("/compare", CompareRequest.class);
    ensure(kernels.compare(pair, null, null, null, null).getCandidates().size() == 1, "/compare");
    SweepResponse sweep = kernels.sweep(example("/sweep", SweepRequest.class), null, null, null, null);
    ensure(!sweep.getPoints().isEmpty(), sweep);
    GateReport verdict = gate.runGate(example("/gate", GateRequest.class), null, null, null, null);
    ensure(verdict.getCases().size() == 1, verdict);

    ensure(!jobs.listJobs(null, null, null, null, null, null, null, null, null, null).getJobs().isEmpty(), "/jobs");
    ensure(machine.stats().getJobStats().getTotalJobs() > 0, "/stats");
    ensure(!machine.info().getDevices().isEmpty(), "/info");
    ensure(gate.history(null, null) != null && gate.listBaselines() != null, "/history");
    ensure(machine.devices() != null && machine.cudaInfo() != null, "/devices");
    ensure(machine.capabilities(null) != null && machine.health() != null, "/capabilities");

    KernelCode nothing = new KernelCode().kernelType(KernelType.CUDA);
    try {
      kernels.evaluate(new EvaluateRequest().kernel(nothing), null, null, null, null);
      throw new IllegalStateException("a contract without a kernel was accepted");
    } catch (ApiException refused) {
      ensure(refused.getCode() == 400, refused);
      ErrorBody error = mapper.readValue(refused.getResponseBody(), ErrorBody.class);
      ensure(!error.getValidationErrors().isEmpty(), error);
    }
  }
}
