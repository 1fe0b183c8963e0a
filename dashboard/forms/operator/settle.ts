// What an operator settles of an organization: its state, plan, limits, name. Its own audit log shows it.
import { type PeopleSchemas, people, take } from "../../api/client.ts";
import { useAct } from "../../lib/act.ts";

export type Changes = Partial<Pick<PeopleSchemas["OperatedOrganization"], "name" | "plan">> & {
  state?: Exclude<PeopleSchemas["OperatedOrganization"]["state"], "moving">;
  requests_per_second?: number | null;
  monthly_quota?: number | null;
};

const NEWS = {
  active: "is active: its live mail leaves",
  suspended: "is suspended: its sends are refused",
  pending_review: "is in review",
} as const;

/** `close`: once it is done. */
export function useSettle(close: () => void) {
  return useAct({
    run: ({ id, ...body }: { id: string } & Changes) =>
      take(people.PUT("/dashboard/api/operator/organizations/{id}", { params: { path: { id } }, body })),
    refresh: [["operator"], ["session"]],
    done: ({ organization }, { state }) => {
      close();
      return state === undefined ? `${organization.name} is changed.` : `${organization.name} ${NEWS[state]}.`;
    },
  });
}
