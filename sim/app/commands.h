/* commands: one function for each command, int cmd_NAME_run (int argc, char **argv), each in a file
 * cmd_NAME.c. argv[0] is the command's name; the result is the exit status (cli.h). A new command
 * gets its prototype here and its row in the table of main.c. */
#ifndef CLUSTERSIM_COMMANDS_H
#define CLUSTERSIM_COMMANDS_H

int cmd_predict_run (int argc, char **argv);
int cmd_sweep_run (int argc, char **argv);
int cmd_plan_run (int argc, char **argv);
int cmd_explain_run (int argc, char **argv);
int cmd_validate_run (int argc, char **argv);
int cmd_import_run (int argc, char **argv);
int cmd_plot_run (int argc, char **argv);
int cmd_list_run (int argc, char **argv);
int cmd_campaign_run (int argc, char **argv);
int cmd_collective_run (int argc, char **argv);
int cmd_law_run (int argc, char **argv);
int cmd_fit_run (int argc, char **argv);
int cmd_report_run (int argc, char **argv);

#endif
