// HTML that a stranger wrote, or a template: in a sandboxed frame whose document the server serves under a policy of its own. The page
// sends the HTML there with a form, because a frame's address could not carry it.
import { useEffect, useId, useMemo, useRef, useState } from "react";
import { Button } from "../ui/button.tsx";
import { quieten } from "./framed.ts";

type Given = { html: string; title: string; className?: string };

export function HtmlFrame({ html, title, className = "" }: Given) {
  const [withPictures, ask] = useState(false);
  const quiet = useMemo(() => quieten(html, withPictures), [html, withPictures]);
  return (
    <>
      <Frame key={quiet.html} html={quiet.html} title={title} className={className} withPictures={withPictures} />
      <div className="dim mt-2 flex flex-wrap items-center gap-2 text-[12.5px]">
        {!quiet.hasRemotePictures && "Links cannot be followed here."}
        {quiet.hasRemotePictures && !withPictures && (
          <>
            Pictures from elsewhere are not loaded: loading them tells their server that somebody looked.
            <Button look="quiet" onClick={() => ask(true)}>
              Load them
            </Button>
          </>
        )}
        {withPictures && "Pictures are loaded from elsewhere. Links cannot be followed here."}
      </div>
    </>
  );
}

/** A new one for each HTML: a frame that is loaded again would fill the browser's history. */
function Frame({ html, title, className, withPictures }: Required<Given> & { withPictures: boolean }) {
  const form = useRef<HTMLFormElement>(null);
  const name = useId();
  useEffect(() => form.current?.submit(), []);
  return (
    <>
      <form
        ref={form}
        hidden
        method="post"
        encType="text/plain"
        action="/dashboard/api/mail-frame"
        target={name}
        aria-hidden="true"
      >
        <input type="hidden" name="pictures" defaultValue={withPictures ? "yes" : "no"} />
        <textarea name="html" defaultValue={html} readOnly />
      </form>
      <iframe className={`mail ${className}`} name={name} title={title} sandbox="" />
    </>
  );
}
