// How much is unpacked of one file, over all that lies in it: bytes, files, and tries that come to nothing because what they
// unpack has no end.

type Limit = { maxOutputLength: number };

export type Room = {
  /** What `unpack` gives; nothing where it is broken or does not fit. */
  unpack(unpack: (limit: Limit) => Buffer): Buffer[];
  /** False when there were too many already. */
  takeFile(): boolean;
};

/** Each of them unpacks as much as there is room for, before it is known that it does not fit. */
const OVERFLOWS_MAX = 10;

/** Room for one file. */
export function createRoom({ bytes_max, files_max }: { bytes_max: number; files_max: number }): Room {
  let [bytes, files, overflows] = [bytes_max, files_max, OVERFLOWS_MAX];
  return {
    unpack(unpack) {
      if (bytes <= 0 || overflows <= 0) return [];
      try {
        const content = unpack({ maxOutputLength: bytes });
        if (content.length > bytes) return [];
        bytes -= content.length;
        return [content];
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") overflows -= 1;
        return [];
      }
    },
    takeFile() {
      files -= 1;
      return files >= 0;
    },
  };
}
