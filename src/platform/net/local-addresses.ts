// Which addresses this machine can send from: asked of the kernel, as interfaces do not tell all of it (loopback ranges,
// addresses routed here, non-local binding).
import { createSocket } from "node:dgram";
import { isIP } from "node:net";

/** True if a socket of this process can have this address as its own. Nothing is sent. */
export function canBind(ip: string): Promise<boolean> {
  const family = isIP(ip);
  if (family === 0) return Promise.resolve(false);
  return new Promise((resolve) => {
    const socket = createSocket(family === 6 ? "udp6" : "udp4");
    const end = (can: boolean) => {
      socket.close();
      resolve(can);
    };
    socket.once("error", () => end(false));
    socket.bind({ address: ip, port: 0, exclusive: true }, () => end(true));
  });
}
