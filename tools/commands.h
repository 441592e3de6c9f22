// The subcommands of `lockstep`, a file each. Every function adds one to the program, with its options and its
// action; results go to standard output, failures are thrown as Error. None needs MPI, but the doctor joins the job
// that it runs in.
#pragma once

#include <CLI/CLI.hpp>

namespace lockstep::tools {

void add_models_command(CLI::App& app);
// Of `app` itself, with all commands that it has when they are called.
void add_completion_command(CLI::App& app);
void add_man_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_checkpoint_command(CLI::App& app);
void add_compare_command(CLI::App& app);
// These two start the program that wrote a checkpoint in the place of this process.
void add_evaluate_command(CLI::App& app);
void add_predict_command(CLI::App& app);
// Weights for other programs, models as ONNX, and weights of other programs.
void add_export_command(CLI::App& app);
void add_import_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_hosts_command(CLI::App& app);
void add_logs_command(CLI::App& app);
void add_pack_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_watch_command(CLI::App& app);
// `status` becomes the exit code of the supervised job.
void add_run_command(CLI::App& app, int& status);
// `status` becomes the exit code of the launched job. Also adds the commands that mpirun calls below it.
void add_launch_command(CLI::App& app, int& status);
// `status` becomes 0 (all green), 1 (something yellow) or 2 (something red).
void add_doctor_command(CLI::App& app, int& status);

}  // namespace lockstep::tools
