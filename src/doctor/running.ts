// Whether a Postern with these settings runs on this machine.
import { get } from "node:http";
import type { HostPort } from "../platform/net/places.ts";

const ANSWER_MS = 5_000;

/** True when one answers on the internal listener. */
export function answersHealth({ host, port }: HostPort): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get({ host, port, path: "/healthz", timeout: ANSWER_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.once("timeout", () => request.destroy());
    request.once("error", () => resolve(false));
  });
}
