// Some of the wrong kernels race, too. That is the subject of race_test alone.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "report_bugs=0";
}
