// Package command runs a program as an effect: it implements
// [semel.Destination] and [semel.Looker].
//
// # What an ending tells
//
//	the program ...                                  evidence
//	could not be started (not found, no permission)  refused: nothing happened
//	exits with 0                                     confirmed
//	exits with a code in Contract.NoEffectExit       refused: nothing happened
//	exits with any other code                        lost
//	is ended by a signal                             lost
//	is stopped at Contract.Timeout, however it ends  lost
//
//	the check ...                                    evidence
//	exits with 0                                     found: it happened
//	exits with 1 and is silent on its stderr         absent: it did not
//	exits with 1 and writes to its stderr            no answer
//	exits with any other code, is stopped, is none   no answer
//
// Exit codes 126 and 127 of a shell are ordinary exit codes: `sh -c 'charge;
// nosuch'` ends with 127 after it charged. A check that complains has not
// looked: in `psql -c ... | grep -q .` an unreachable database and an absent
// row both end with 1, and only the complaint tells them apart.
//
// # What a program sees
//
// The program and the check find SEMEL_KEY, SEMEL_SCOPE, SEMEL_OPERATION,
// SEMEL_ATTEMPT and SEMEL_DESTINATION_KEY in their environment. The last is the
// same for every attempt; a program that passes it on to a service that honours
// keys is safe to repeat. The program's standard input is the request's body,
// or empty. The check is a line for /bin/sh, with the program as $0 and its
// arguments as $1, $2 and so on, and has no input.
//
// The program leads a session of its own, without a terminal: it cannot ask for
// a password. Its process group gets the signals that this process is asked to
// forward, and after a timeout SIGTERM, a pause, and SIGKILL.
//
// # Boundaries
//
// Identity is the program as it is spelled, its arguments and its input. The
// working directory, the environment and what lies behind the program's name
// are the caller's, and may differ from one attempt to the next.
//
// When this process is killed outright, the program goes on: ending it in the
// middle would leave half an effect. It ends by itself, or by SIGPIPE at the
// next thing it prints. Nobody saw how it ended, so the operation is unknown,
// and no attempt is recorded as closed. Hence Contract.MaxProcessing of a
// command counts from the start of the program: it is the longest time the
// program may run, and after it whatever it set in motion.
//
// An attempt is closed when its process group is gone and its output has ended.
// A descendant that leaves the group and closes its output is not seen.
package command
