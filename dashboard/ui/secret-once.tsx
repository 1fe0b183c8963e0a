// A secret that is shown once. It lives in the component that asked for it, and is gone with it.
import { Button } from "./button.tsx";
import { CopyButton } from "./copy.tsx";

export function SecretOnce({ secret, what, done }: { secret: string; what: string; done: () => void }) {
  return (
    <>
      <p>This is its {what}. It is shown only now: copy it to where your program reads it.</p>
      <code className="said">{secret}</code>
      <div className="acts">
        <CopyButton text={secret} what={`the ${what}`} />
        <Button look="primary" onClick={done}>
          I have it
        </Button>
      </div>
    </>
  );
}
