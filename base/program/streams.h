/*
 * Standard streams of a program, from its first line to its exit code: what it opens is none of
 * them, and what it was to say on stdout is written, or its exit code says that it was not.
 */
#ifndef SWERVE_BASE_PROGRAM_STREAMS_H
#define SWERVE_BASE_PROGRAM_STREAMS_H

/* Opens those that are closed on /dev/null, lest a file that is opened later take a line that is
 * printed, and makes errors of write() of what would end the program: a reader that goes away, a
 * file that may not grow any more (RLIMIT_FSIZE). */
void streams_begin(void);

/* The exit code: that of STATUS_IO, with a sentence on stderr, where `code` is 0 and stdout could
 * not be written. A reader that went away wanted no more. */
int streams_end(int code);

#endif
