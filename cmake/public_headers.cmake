# The headers for users, by subject. cmake --install lays down exactly these and what they include; everything else of
# framework/lockstep is internal and may change. tests/headers compiles each by itself, and refuses one that brings
# CLI11, JSON, fmt or spdlog. The headers of models/zoo and data/datasets are all for users.
set(LOCKSTEP_PUBLIC_HEADERS
  lockstep/lockstep.h
  # numbers, memory, errors
  lockstep/core/bfloat16.h
  lockstep/core/dtype.h
  lockstep/core/error.h
  lockstep/core/format.h
  lockstep/core/log.h
  lockstep/core/random.h
  lockstep/core/shape.h
  lockstep/core/tensor.h
  # models: values, ops, modules
  lockstep/graph/graph.h
  lockstep/graph/loss.h
  lockstep/graph/metric.h
  lockstep/graph/op.h
  lockstep/graph/parameter.h
  lockstep/graph/table.h
  lockstep/graph/type.h
  lockstep/graph/value.h
  lockstep/ops/attention.h
  lockstep/ops/bag.h
  lockstep/ops/batch_norm2d.h
  lockstep/ops/cast.h
  lockstep/ops/concat.h
  lockstep/ops/conv_transpose.h
  lockstep/ops/convolution.h
  lockstep/ops/class_counts.h
  lockstep/ops/cross_entropy.h
  lockstep/ops/dropout.h
  lockstep/ops/embedding.h
  lockstep/ops/fourier.h
  lockstep/ops/gradient.h
  lockstep/ops/index_select.h
  lockstep/ops/linear.h
  lockstep/ops/normal_noise.h
  lockstep/ops/pad.h
  lockstep/ops/permute.h
  lockstep/ops/one_hot.h
  lockstep/ops/pair_products.h
  lockstep/ops/pointwise.h
  lockstep/ops/pool.h
  lockstep/ops/recurrent.h
  lockstep/ops/reduce.h
  lockstep/ops/reduced_axes.h
  lockstep/ops/resample.h
  lockstep/ops/reshape.h
  lockstep/ops/rotary.h
  lockstep/ops/slice.h
  lockstep/ops/row_norm.h
  lockstep/ops/softmax.h
  lockstep/ops/table.h
  lockstep/ops/to_floating.h
  lockstep/nn/activations.h
  lockstep/onnx/export.h
  lockstep/onnx/import/imported_model.h
  lockstep/onnx/import/model_file.h
  lockstep/ops/spectral_product.h
  lockstep/ops/vocabulary_cross_entropy.h
  lockstep/ops/write_rows.h
  lockstep/losses/classification.h
  lockstep/losses/per_sample.h
  lockstep/losses/regression.h
  lockstep/nn/attention.h
  lockstep/losses/retrieval.h
  lockstep/nn/child.h
  lockstep/nn/embedding.h
  lockstep/nn/init.h
  lockstep/nn/layers.h
  lockstep/nn/module.h
  lockstep/nn/norms.h
  lockstep/nn/convolution.h
  lockstep/nn/pooling.h
  lockstep/nn/recurrent.h
  lockstep/nn/sequential.h
  lockstep/nn/shapes.h
  lockstep/nn/summary.h
  lockstep/kernels/kernel.h    # kernels of users' own ops
  lockstep/kernels/registry.h
  lockstep/plan/compiled_model.h
  lockstep/plan/plan.h
  lockstep/metrics/classes.h
  lockstep/metrics/metrics.h
  lockstep/metrics/units.h
  lockstep/metrics/probabilities.h
  # data
  lockstep/data/array_datasets.h
  lockstep/data/augment/color_jitter.h
  lockstep/data/augment/field_symmetry.h
  lockstep/data/augment/gaussian_noise.h
  lockstep/data/augment/geometry.h
  lockstep/data/augment/rand_augment.h
  lockstep/data/augment/random_erasing.h
  lockstep/data/batch.h
  lockstep/data/cached_dataset.h
  lockstep/data/batch_mix.h
  lockstep/data/catalogue.h
  lockstep/data/class_target.h
  lockstep/data/combined_datasets.h
  lockstep/data/dataset.h
  lockstep/data/dataset_view.h
  lockstep/data/field_selection.h
  lockstep/data/file_pattern.h
  lockstep/data/file_source.h
  lockstep/data/image_data.h
  lockstep/data/image_dataset.h
  lockstep/data/image_options.h
  lockstep/data/join_fields.h
  lockstep/data/inspection.h
  lockstep/data/images/decoded_images.h
  lockstep/data/loader.h
  lockstep/data/normalisation.h
  lockstep/data/pipeline.h
  lockstep/data/reservoir.h
  lockstep/data/run_data.h
  lockstep/data/sample_order.h
  lockstep/data/sample_store.h
  lockstep/data/sampler.h
  lockstep/data/stream.h
  lockstep/data/stream_source.h
  lockstep/data/transforms.h
  lockstep/io/hdf5_reader.h
  lockstep/data/records/record_reader.h
  lockstep/data/records/record_writer.h
  lockstep/data/unreadable.h
  lockstep/data/wrap_sets.h
  # training
  lockstep/optim/average.h
  lockstep/optim/groups.h
  lockstep/optim/row_rule.h
  lockstep/optim/rules.h
  lockstep/optim/schedule.h
  lockstep/optim/update_rule.h
  lockstep/train/callbacks/callback.h
  lockstep/train/options/options.h
  lockstep/train/run/guard_main.h
  lockstep/train/run/program.h
  lockstep/train/run/session.h
  lockstep/train/step/trainer.h
  # ranks
  lockstep/comm/agreement.h
  lockstep/comm/communicator.h
  lockstep/comm/environment.h
  lockstep/comm/launch.h
  lockstep/comm/mpi_interop.h
  lockstep/comm/request.h
  lockstep/host/process_settings.h
  lockstep/host/threads.h
  lockstep/parallel/exchange/allreduce.h
  lockstep/parallel/reduce/bucket_hook.h
  # states, weights, prediction
  lockstep/checkpoint/directory.h
  lockstep/checkpoint/state.h
  lockstep/checkpoint/weights.h
  lockstep/infer/item_index.h
  lockstep/infer/predictor.h)

# Sets `result` to `headers` and all headers of the library that they include, by way of others too.
function(lockstep_with_included headers result)
  set(all "")
  set(open ${headers})
  while(open)
    list(POP_FRONT open header)
    if(header IN_LIST all)
      continue()
    endif()
    list(APPEND all ${header})
    file(STRINGS ${PROJECT_SOURCE_DIR}/framework/${header} lines REGEX "^#include \"lockstep/")
    foreach(line ${lines})
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
      list(APPEND open ${included})
    endforeach()
  endwhile()
  set(${result} ${all} PARENT_SCOPE)
endfunction()
