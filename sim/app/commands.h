/* commands: one function for each command, int cmd_NAME (int argc, char **argv), each in a file
 * cmd_NAME.c. argv[0] is the command's name; the result is the exit status (cli.h). A new command gets its
 * prototype here and its row in the table of main.c. */
#ifndef CLUSTERSIM_COMMANDS_H
#define CLUSTERSIM_COMMANDS_H

#endif
