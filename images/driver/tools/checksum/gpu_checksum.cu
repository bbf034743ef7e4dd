// SPDX-License-Identifier: Apache-2.0
//
// ironrail_checksum computes the same numbers over and over on every GPU of a node, all at
// once, and prints a checksum of what came out of each kind of unit. GPUs of one model with
// one driver print the same; one that prints another computes wrong results.
//
//   ironrail_checksum [SECONDS [STEPS]]
//
// The algorithms are fixed: no library, no atomics, no tuning, and each thread by itself, so
// that neither the number of multiprocessors nor the order of blocks changes a result. fp32
// and fp64 are the logistic map, in which an error of one bit grows to another number within
// some dozen steps, and each number is mixed into an integer, which forgets nothing. int is
// integer arithmetic. matrix multiplies tiles of half precision on tensor or matrix cores and
// adds them up in single precision.
//
// It is compiled by nvcc, by hipcc, and, to try it where there is no GPU, by a compiler of
// C++, for which one processor is the GPU; that has no matrix units. No operations may be
// contracted: -fmad=false, -ffp-contract=off.
//
// Lines are JSON objects: {"program"}, then {"gpu"} for each, {"result"} for each unit of
// each, {"error"}, and {"end"}.

#include <cmath>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>
#define GPU(name) cuda##name
#define RUNTIME "cuda"
typedef cudaDeviceProp DeviceProp;
#elif defined(__HIPCC__)
#include <hip/hip_runtime.h>
#define GPU(name) hip##name
#define RUNTIME "hip"
typedef hipDeviceProp_t DeviceProp;
#else
#define RUNTIME "host"
#define __device__
using std::fma; // of each precision
#endif

// The threads of a round, and how many steps each makes: about a tenth of a second of a
// large GPU. They are part of the result.
#if defined(GPU)
static const unsigned blocks = 4096, threads = 256;
static const unsigned usualSteps = 1u << 18;
#else
static const unsigned blocks = 16, threads = 256;
static const unsigned usualSteps = 1u << 10;
#endif

// matrixShare is how many steps of the others one of matrix stands for.
static const unsigned matrixShare = 8;

enum Unit { fp32, fp64, integer, matrix, units };
static const char *const unitNames[units] = {"fp32", "fp64", "int", "matrix"};

__device__ static inline uint32_t mix(uint32_t h, uint32_t v) {
  h = (h ^ v) * 0x85ebca6bu;
  return (h ^ (h >> 13)) * 0xc2b2ae35u;
}

// begin is a number above 0 and below 1 that each thread begins at, of 23 bits.
__device__ static inline float begin(uint32_t id) { return ((mix(id, 0x9e3779b9u) & 0x7fffffu) | 1u) * (1.0f / 8388608.0f); }

__device__ static inline uint32_t bitsOf(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}

__device__ static inline uint32_t bitsOf(double f) {
  uint64_t u;
  memcpy(&u, &f, sizeof u);
  return uint32_t(u) ^ uint32_t(u >> 32);
}

// laneOf is the logistic map in single or double precision; fma is that of the precision.
template <typename F> __device__ static uint32_t laneOf(uint32_t id, unsigned steps) {
  const F rx = F(3.99), ry = F(3.98);
  F x = begin(id), y = begin(id + 0x10000000u);
  uint32_t h = id;
  for (unsigned i = 0; i < steps; i++) {
    x = rx * fma(-x, x, x);
    y = ry * fma(-y, y, y);
    if ((i & 15u) == 15u) h = mix(mix(h, bitsOf(x)), bitsOf(y));
  }
  return h;
}

__device__ static uint32_t laneInt(uint32_t id, unsigned steps) {
  uint32_t a = mix(id, 1), b = mix(id, 2), h = id;
  for (unsigned i = 0; i < steps; i++) {
    a = a * 1664525u + b;
    b = (b ^ (a >> 15)) * 0x2c1b3c6du + (a << 7);
    if ((i & 15u) == 15u) h = mix(h, a ^ b);
  }
  return h;
}

#if defined(GPU)

template <uint32_t (*lane)(uint32_t, unsigned)> __global__ void compute(uint32_t *out, unsigned steps) {
  const uint32_t id = blockIdx.x * blockDim.x + threadIdx.x;
  out[id] = lane(id, steps);
}

// tiles is how many pairs of matrices a warp multiplies in turn.
static const int tiles = 4;

// small is a number of few bits between -1 and 1, exact in half precision.
__device__ static inline float small(uint32_t id) { return (int(mix(id, 3) & 127u) - 64) * (1.0f / 64.0f); }

#if defined(__CUDACC__)
__global__ void computeMatrix(uint32_t *out, unsigned steps) {
  const uint32_t id = blockIdx.x * blockDim.x + threadIdx.x, warp = id / 32, lane = id % 32;
#if __CUDA_ARCH__ >= 700
  namespace wmma = nvcuda::wmma;
  __shared__ __half a[tiles][256], b[tiles][256];
  for (int i = threadIdx.x; i < tiles * 256; i += blockDim.x) {
    a[i / 256][i % 256] = __float2half(small(i));
    b[i / 256][i % 256] = __float2half(small(i + 0x100000));
  }
  __syncthreads();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left[tiles];
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right[tiles];
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  for (int t = 0; t < tiles; t++) {
    wmma::load_matrix_sync(left[t], a[t], 16);
    wmma::load_matrix_sync(right[t], b[t], 16);
  }
  wmma::fill_fragment(sum, begin(warp));
  for (unsigned i = 0; i < steps; i++) {
#pragma unroll
    for (int t = 0; t < tiles; t++) wmma::mma_sync(sum, left[t], right[(t + 1) % tiles], sum);
    if ((i & 63u) == 63u) // keeps sums where adding rounds, and an error in them for good
      for (int k = 0; k < sum.num_elements; k++) sum.x[k] = sum.x[k] * 0.5f + begin(warp + i);
  }
  uint32_t h = id;
  for (int k = 0; k < sum.num_elements; k++) h = mix(h, bitsOf(sum.x[k]));
  out[id] = h ^ lane;
#endif
}
#else
typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef float float4v __attribute__((ext_vector_type(4)));

__global__ void computeMatrix(uint32_t *out, unsigned steps) {
  const uint32_t id = blockIdx.x * blockDim.x + threadIdx.x;
#if defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) || defined(__gfx950__)
  half4 left[tiles], right[tiles];
  for (int t = 0; t < tiles; t++)
    for (int k = 0; k < 4; k++) {
      left[t][k] = _Float16(small((threadIdx.x % 64) * 16 + t * 4 + k));
      right[t][k] = _Float16(small((threadIdx.x % 64) * 16 + t * 4 + k + 0x100000));
    }
  const float first = begin(id / 64);
  float4v sum = {first, first, first, first};
  for (unsigned i = 0; i < steps; i++) {
#pragma unroll
    for (int t = 0; t < tiles; t++) sum = __builtin_amdgcn_mfma_f32_16x16x16f16(left[t], right[(t + 1) % tiles], sum, 0, 0, 0);
    if ((i & 63u) == 63u)
      for (int k = 0; k < 4; k++) sum[k] = sum[k] * 0.5f + begin(id / 64 + i);
  }
  uint32_t h = id;
  for (int k = 0; k < 4; k++) h = mix(h, bitsOf(sum[k]));
  out[id] = h;
#endif
}
#endif

#endif // GPU

// fold is FNV-1a of 64 bits, over words.
static uint64_t fold(const std::vector<uint32_t> &words) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (uint32_t w : words) h = (h ^ w) * 0x100000001b3ull;
  return h;
}

static std::mutex printing;

// quoted is text between quotes, without what JSON would have to escape.
static std::string quoted(const char *text) {
  std::string s = "\"";
  for (; *text; text++)
    if (*text >= ' ' && *text != '"' && *text != '\\' && *text != 127) s += *text;
  return s + '"';
}

static void line(const std::string &text) {
  std::lock_guard<std::mutex> held(printing);
  printf("%s\n", text.c_str());
  fflush(stdout);
}

// moduleVersion is the version of a kernel module; empty where there is none.
static std::string moduleVersion() {
  for (const char *path : {"/sys/module/nvidia/version", "/sys/module/amdgpu/version"})
    if (FILE *f = fopen(path, "r")) {
      char text[128] = "";
      const bool read = fgets(text, sizeof text, f) != nullptr;
      fclose(f);
      if (read) return text;
    }
  return "";
}

// Tally is what came out of one unit: the checksum that came most often, by vote, and how
// many rounds gave another.
struct Tally {
  std::vector<std::pair<uint64_t, unsigned>> seen;
  unsigned rounds = 0;
  void add(uint64_t sum) {
    rounds++;
    for (auto &s : seen)
      if (s.first == sum) {
        s.second++;
        return;
      }
    if (seen.size() < 1024) seen.emplace_back(sum, 1);
  }
  std::string result(const std::string &gpu, const char *unit) const {
    std::pair<uint64_t, unsigned> most(0, 0);
    for (const auto &s : seen)
      if (s.second > most.second) most = s;
    char text[256];
    snprintf(text, sizeof text, ",\"unit\":\"%s\",\"checksum\":\"%016llx\",\"rounds\":%u,\"others\":%u}", unit, (unsigned long long)most.first, rounds, rounds - most.second);
    return "{\"result\":" + gpu + text;
  }
};

typedef std::chrono::steady_clock Clock;

// atLeast is how many rounds of each unit are made, however long they take.
static const unsigned atLeast = 2;

#if defined(GPU)

// failed says that a call failed. It is the end of the GPU's work.
static bool failed(const std::string &gpu, const char *call, GPU(Error_t) err) {
  if (err == GPU(Success)) return false;
  line("{\"error\":" + gpu + ",\"text\":" + quoted((std::string(call) + ": " + GPU(GetErrorString)(err)).c_str()) + "}");
  return true;
}

// hasMatrix reports whether computeMatrix has code for a GPU.
static bool hasMatrix(const DeviceProp &p) {
#if defined(__CUDACC__)
  return p.major >= 7;
#else
  for (const char *name : {"gfx908", "gfx90a", "gfx940", "gfx941", "gfx942", "gfx950"})
    if (strncmp(p.gcnArchName, name, 6) == 0) return true;
  return false;
#endif
}

static bool onGPU(int number, double seconds, unsigned steps) {
  char at[32] = "";
  std::string gpu = std::to_string(number);
  if (failed(gpu, "set device", GPU(SetDevice)(number)) || failed(gpu, "PCI address", GPU(DeviceGetPCIBusId)(at, sizeof at, number))) return false;
  gpu = quoted(at);
  DeviceProp p;
  if (failed(gpu, "properties", GPU(GetDeviceProperties)(&p, number))) return false;
#if defined(__CUDACC__)
  const std::string arch = std::to_string(p.major) + "." + std::to_string(p.minor);
#else
  const std::string arch = p.gcnArchName;
#endif
  line("{\"gpu\":" + gpu + ",\"name\":" + quoted(p.name) + ",\"arch\":" + quoted(arch.c_str()) + ",\"multiprocessors\":" + std::to_string(p.multiProcessorCount) + "}");
  const size_t count = size_t(blocks) * threads;
  uint32_t *out = nullptr;
  if (failed(gpu, "memory", GPU(Malloc)((void **)&out, count * sizeof *out))) return false;
  std::vector<uint32_t> words(count);
  Tally tally[units];
  const int last = hasMatrix(p) ? units : int(matrix);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (unsigned round = 0; round < atLeast || Clock::now() < end; round++)
    for (int u = 0; u < last; u++) {
      if (failed(gpu, "clear", GPU(Memset)(out, 0xff, count * sizeof *out))) return false;
      switch (u) {
      case fp32: compute<laneOf<float>><<<blocks, threads>>>(out, steps); break;
      case fp64: compute<laneOf<double>><<<blocks, threads>>>(out, steps / 4); break;
      case integer: compute<laneInt><<<blocks, threads>>>(out, steps); break;
      default: computeMatrix<<<blocks, threads>>>(out, steps / matrixShare);
      }
      if (failed(gpu, unitNames[u], GPU(GetLastError)()) || failed(gpu, unitNames[u], GPU(Memcpy)(words.data(), out, count * sizeof *out, GPU(MemcpyDeviceToHost)))) return false;
      tally[u].add(fold(words));
    }
  for (int u = 0; u < last; u++) line(tally[u].result(gpu, unitNames[u]));
  return !failed(gpu, "memory", GPU(Free)(out));
}

static int countGPUs(bool *bad) {
  int n = 0;
  const GPU(Error_t) err = GPU(GetDeviceCount)(&n);
  *bad = err != GPU(ErrorNoDevice) && failed("\"\"", "count of GPUs", err);
  return *bad ? 0 : n;
}

static std::string versions() {
  int runtime = 0, driver = 0;
  (void)GPU(RuntimeGetVersion)(&runtime);
  (void)GPU(DriverGetVersion)(&driver);
  return ",\"runtime_version\":" + std::to_string(runtime) + ",\"driver_api\":" + std::to_string(driver);
}

#else

static bool onGPU(int, double seconds, unsigned steps) {
  line("{\"gpu\":\"host\",\"name\":\"host\",\"arch\":\"host\",\"multiprocessors\":1}");
  std::vector<uint32_t> words(size_t(blocks) * threads);
  uint32_t (*const lanes[])(uint32_t, unsigned) = {laneOf<float>, laneOf<double>, laneInt};
  Tally tally[units];
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (unsigned round = 0; round < atLeast || Clock::now() < end; round++)
    for (int u = 0; u < matrix; u++) {
      for (size_t id = 0; id < words.size(); id++) words[id] = lanes[u](uint32_t(id), u == fp64 ? steps / 4 : steps);
      tally[u].add(fold(words));
    }
  for (int u = 0; u < matrix; u++) line(tally[u].result("\"host\"", unitNames[u]));
  return true;
}

static int countGPUs(bool *bad) {
  *bad = false;
  return 1;
}

static std::string versions() { return ",\"runtime_version\":0,\"driver_api\":0"; }

#endif

int main(int argc, char **argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 30;
  const unsigned steps = argc > 2 ? unsigned(atol(argv[2])) : usualSteps;
  if (seconds < 0 || seconds > 86400 || steps < 64 || argc > 3) {
    fprintf(stderr, "usage: ironrail_checksum [SECONDS [STEPS]]\n");
    return 2;
  }
  line("{\"program\":\"ironrail_checksum\",\"version\":1,\"runtime\":\"" RUNTIME "\"" + versions() + ",\"module\":" + quoted(moduleVersion().c_str()) + ",\"steps\":" + std::to_string(steps) + "}");
  bool bad = false;
  const int n = countGPUs(&bad);
  std::vector<std::thread> all;
  std::mutex ending;
  for (int i = 0; i < n; i++)
    all.emplace_back([&, i] {
      const bool good = onGPU(i, seconds, steps);
      std::lock_guard<std::mutex> held(ending);
      bad = bad || !good;
    });
  for (auto &t : all) t.join();
  line("{\"end\":true,\"gpus\":" + std::to_string(n) + "}");
  return bad ? 1 : 0;
}
