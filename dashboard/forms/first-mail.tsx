// The code that sends the first mail, in the language that the person writes, with a test key of theirs when they ask for one. The
// key is shown here and goes into no cache and no address.
import * as Tabs from "@radix-ui/react-tabs";
import { useState } from "react";
import { take, v1 } from "../api/client.ts";
import { useAct } from "../lib/act.ts";
import { samplesOf } from "../lib/samples.ts";
import { Button } from "../ui/button.tsx";
import { CopyButton } from "../ui/copy.tsx";

const PLACEHOLDER = "<API_KEY>";
const KEY_NAME = "First mail";

export function FirstMail({ from }: { from: string }) {
  const [key, keep] = useState<string | null>(null);
  const making = useAct({
    run: () => take(v1.POST("/v1/api-keys", { body: { name: KEY_NAME, environment: "test" } })),
    refresh: [["keys"]],
    done: ({ secret }) => {
      keep(secret);
      making.reset();
      return undefined;
    },
  });
  const samples = samplesOf({ origin: location.origin, key: key ?? PLACEHOLDER, from });
  return (
    <>
      {key === null ? (
        <div className="flex flex-wrap items-center gap-2">
          <span>Put your key in place of &lt;API_KEY&gt;, or</span>
          <Button busy={making.isPending && "Making…"} onClick={() => making.mutate(undefined)}>
            Fill in a new test key
          </Button>
        </div>
      ) : (
        <p>
          The test key “{KEY_NAME}” is filled in; it is shown only now. With it everything is checked, and nothing
          leaves.
        </p>
      )}
      <Tabs.Root defaultValue="curl" className="mt-2">
        <Tabs.List className="tabs" aria-label="Languages">
          {samples.map(({ language }) => (
            <Tabs.Trigger key={language} value={language}>
              {language}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        {samples.map(({ language, code }) => (
          <Tabs.Content key={language} value={language}>
            <code className="said">{code}</code>
            <div className="mt-1 flex flex-wrap items-center gap-2">
              <CopyButton text={code} what={`the ${language} code`} />
              {language !== "curl" && (
                <span className="dim text-[12.5px]">
                  To install the library, see its README in <code>clients/</code> of Postern.
                </span>
              )}
            </div>
          </Tabs.Content>
        ))}
      </Tabs.Root>
    </>
  );
}
