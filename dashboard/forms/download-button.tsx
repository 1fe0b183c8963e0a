// A file of /v1 that is kept by the browser. A plain link could not name the organization that the person acts for.
import { useAct } from "../lib/act.ts";
import { Button } from "../ui/button.tsx";

type Given = { fetch: () => Promise<unknown>; name: string; label: string; look?: "plain" | "quiet"; what?: string };

/** `fetch` answers a Blob; `what` names the file for those who do not see what stands beside the button. */
export function DownloadButton({ fetch, name, label, look = "quiet", what }: Given) {
  const downloading = useAct({
    run: fetch,
    refresh: [],
    done: (blob) => {
      keep(blob as Blob, name);
      return undefined;
    },
  });
  return (
    <Button
      look={look}
      aria-label={what && `${label} ${what}`}
      busy={downloading.isPending && "Loading…"}
      onClick={() => downloading.mutate(undefined)}
    >
      {label}
    </Button>
  );
}

function keep(blob: Blob, name: string): void {
  const href = URL.createObjectURL(blob);
  Object.assign(document.createElement("a"), { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
