// Whether a list follows what happens. It says which: live, or read once.
type Given = { on: boolean; flip: () => void };

export function LiveSwitch({ on, flip }: Given) {
  return (
    <button
      type="button"
      className="live"
      aria-pressed={on}
      title={on ? "The list follows what happens" : "Let the list follow what happens"}
      onClick={flip}
    >
      <i />
      {on ? "Live" : "Live is off"}
    </button>
  );
}
