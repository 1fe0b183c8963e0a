// Starting, pausing, resuming and skipping the warming of a domain. Skipping asks, and says what it risks.
import { useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { useAct } from "../../lib/act.ts";
import { PHASE_WORDS } from "../../lib/domain-views.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";

type Phase = NonNullable<Schemas["StartWarmingRequest"]["phase"]>;
const PHASES: readonly Phase[] = ["phase_1", "phase_2", "phase_3", "phase_4", "warmed"];

export function WarmingActs({ id, status }: { id: string; status: Schemas["Warming"] }) {
  const [isSkipping, skip] = useState(false);
  const params = { path: { id } };
  const refresh = [["domain", id]];
  const pause = useAct({
    run: () => take(v1.POST("/v1/domains/{id}/warming/pause", { params, body: {} })),
    refresh,
    done: () => "Paused: mail from the domain is refused until you resume.",
  });
  const resume = useAct({
    run: () => take(v1.POST("/v1/domains/{id}/warming/resume", { params })),
    refresh,
    done: () => "The warming continues.",
  });
  const canPause = !status.paused && status.phase !== "not_started" && status.phase !== "warmed";
  return (
    <>
      <Button look="quiet" onClick={() => skip(true)}>
        {status.phase === "not_started" ? "Start at a phase" : "Another phase"}
      </Button>
      {canPause && (
        <Button disabled={pause.isPending} onClick={() => pause.mutate(undefined)}>
          Pause
        </Button>
      )}
      {status.paused && (
        <Button look="primary" disabled={resume.isPending} onClick={() => resume.mutate(undefined)}>
          Resume
        </Button>
      )}
      <Dialog title="Go to another phase" open={isSkipping} close={() => skip(false)}>
        <Skip id={id} phase={status.phase} close={() => skip(false)} />
      </Dialog>
    </>
  );
}

type SkipGiven = { id: string; phase: Schemas["Warming"]["phase"]; close: () => void };

function Skip({ id, phase: present, close }: SkipGiven) {
  const [phase, choose] = useState<Phase>("phase_1");
  const [isSure, assure] = useState(false);
  const starting = useAct({
    run: () => take(v1.POST("/v1/domains/{id}/warming/start", { params: { path: { id } }, body: { phase } })),
    refresh: [["domain", id]],
    done: () => {
      close();
      return `${PHASE_WORDS[phase]} has begun.`;
    },
  });
  const isAhead = PHASES.indexOf(phase) > PHASES.indexOf(present as Phase) && phase !== "phase_1";
  return (
    <div className="mt-3 grid gap-4">
      <Field label="Phase" help="It begins on its first day">
        {(bound) => (
          <select {...bound} name="phase" value={phase} onChange={(event) => choose(event.target.value as Phase)}>
            {PHASES.map((one) => (
              <option key={one} value={one}>
                {PHASE_WORDS[one]}
                {one === "warmed" && ": no limits"}
              </option>
            ))}
          </select>
        )}
      </Field>
      {isAhead && (
        <>
          <p className="problem">
            Providers do not know this domain yet. A burst from an unknown domain ends in spam folders or is refused,
            and that takes weeks to repair. Skip only with a domain that sends this much elsewhere already.
          </p>
          <label className="flex items-center gap-2">
            <input type="checkbox" checked={isSure} onChange={(event) => assure(event.target.checked)} />
            The domain sends this much already
          </label>
        </>
      )}
      <DialogActs
        close={close}
        act="Begin there"
        look={isAhead ? "danger" : "primary"}
        disabled={isAhead && !isSure}
        busy={starting.isPending && "One moment…"}
        run={() => starting.mutate(undefined)}
      />
    </div>
  );
}
