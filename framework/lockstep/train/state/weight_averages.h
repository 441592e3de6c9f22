// The average of a model's weights over training (optim/average.h), beside which running statistics of batch norms are
// averaged in the same way: evaluations and exported weights use both. The parameters' averages are optimizer state;
// those of the statistics are here, in f64, the same on all ranks. Functions are collective; one thread. Without
// options they do nothing.
#pragma once

#include <string>
#include <vector>

#include "lockstep/io/named_tensor.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/prepare/prepared_model.h"

namespace lockstep::train {

class WeightAverages {
 public:
  // Both must outlive this object.
  WeightAverages(PreparedModel& prepared, parallel::GradientEngine& engine);

  void begin();   // the weights are first ones: a moving average begins with them, a mean is empty
  void update();  // after an update was applied, and running statistics moved; no communication
  void add();     // adds the weights to the mean of SWA; nothing for a moving average
  // Whether use() has an effect: there is an average.
  bool exists() const { return count_ > 0; }
  // Puts the average in the place of the weights, and back, with all bits. No step may come between.
  void use(bool average);

  // The tensors of a checkpoint beside the optimizer's state, which must be whole: "average/count", and "average/NAME"
  // of running statistics and of further names of tied weights.
  std::vector<io::NamedTensor> state() const;
  // Throws Error unless these tensors have what load() takes; no communication.
  void require(const std::vector<io::TensorInfo>& infos) const;
  void load(const std::vector<io::NamedTensor>& tensors);  // ignores other names; no communication

 private:
  struct Statistic {
    std::string name;
    const Parameter* parameter;
    std::vector<double> average;
    Tensor own = {};  // the values while use() has replaced them
  };
  void move(double weight);

  const optim::AverageOptions& options_;
  plan::ParameterStore& store_;
  parallel::GradientEngine* engine_;
  std::vector<Statistic> statistics_;
  double count_ = 0;  // of weights in the mean; 1 for a moving average
};

}  // namespace lockstep::train
