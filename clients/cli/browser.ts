// The browser of the person at this machine.
import { spawn } from "node:child_process";

/** Opens a file or an address; where there is no browser, nothing happens. */
export function openInBrowser(place: string): void {
  const [command = "", ...given] =
    process.platform === "darwin" ? ["open"] : process.platform === "win32" ? ["cmd", "/c", "start", ""] : ["xdg-open"];
  spawn(command, [...given, place], { stdio: "ignore", detached: true })
    .on("error", () => undefined)
    .unref();
}
