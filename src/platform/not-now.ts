// What waits for something that comes back by itself (a resolver, a busy worker), thrown by those who process mail: it is
// tried again and is no fault of the mail. Who throws it says for how long that makes sense.

/** The work at hand cannot be done now and is to be tried again later. */
export class NotNow extends Error {
  override name = "NotNow";
}
