// What can be done with a real mailbox: ask its owner again, take it out of all aliases.
import { type Schemas, take, v1 } from "../../api/client.ts";
import { useAct } from "../../lib/act.ts";

type Destination = Schemas["MaskedDestination"];

export function useAskAgain({ id, email }: Destination) {
  return useAct({
    run: () => take(v1.POST("/v1/masked/destinations/{id}/resend", { params: { path: { id } } })),
    refresh: [["masked", "destinations"]],
    done: () => `The link is mailed to ${email} again.`,
  });
}

/** `done`: once it is removed. */
export function useRemoveMailbox(done: () => void) {
  return useAct({
    run: ({ id }: Destination) => take(v1.DELETE("/v1/masked/destinations/{id}", { params: { path: { id } } })),
    refresh: [
      ["masked", "aliases"],
      ["masked", "alias"],
      ["masked", "destinations"],
    ],
    done: (_out, { email }) => {
      done();
      return `${email} is removed from all aliases.`;
    },
  });
}
