// The sign and the name.
export function Brand() {
  return (
    <span className="inline-flex items-center gap-2 text-ink">
      <img src="/icon.svg" alt="" width="22" height="22" />
      Postern
    </span>
  );
}
