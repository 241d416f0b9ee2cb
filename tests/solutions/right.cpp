#include "graphnet.h"

extern "C" void candidate(const Tensor* inputs, Tensor* outputs) {
    const float* x = static_cast<const float*>(inputs[0].data);
    const float* weight = static_cast<const float*>(inputs[1].data);
    float* out = static_cast<float*>(outputs[0].data);
    const int64_t rows = inputs[0].sizes[0], columns = inputs[0].sizes[1];
    const int64_t features = inputs[1].sizes[0];
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t feature = 0; feature < features; ++feature) {
            float sum = 0;
            for (int64_t column = 0; column < columns; ++column)
                sum += x[row * columns + column] * weight[feature * columns + column];
            out[row * features + feature] = sum > 0 ? sum : 0;
        }
}
