#include "graphnet.h"

extern "C" void candidate(const Tensor* inputs, Tensor* outputs) { undeclared(); }
