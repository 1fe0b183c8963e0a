// A command's output that cannot be written: a full disk, a reader that went away.

/**
 * From now on it is said once, and the command ends with 1. It goes on until then, as half of a change is worse than one that
 * nobody read of. A reader that has enough (`| head`) is no failure.
 */
export function noticeLostOutput(): void {
  let isSaid = false;
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE" || isSaid) return;
    isSaid = true;
    process.stderr.write(`postern: the output could not be written: ${error.message}\n`);
    process.exitCode = 1;
  });
}
