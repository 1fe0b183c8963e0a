// The conditions of a rule as a tree that is edited in place. Every change makes a new tree; nothing is sent.
import {
  COMPARATOR_WORDS,
  change,
  comparatorsOf,
  type Draft,
  FIELD_WORDS,
  FIELDS,
  FLAG_FIELDS,
  type GroupDraft,
  isGroup,
  type LeafDraft,
  type Mode,
  newGroup,
  newLeaf,
} from "../../lib/rule-tree.ts";
import { Button } from "../../ui/button.tsx";

const DEPTH_MAX = 3;
const MODES: Record<Mode, string> = {
  all: "All of these hold",
  any: "One of these holds",
  none: "None of these holds",
};

type Given = { tree: GroupDraft; set: (tree: GroupDraft) => void; problem?: string };

export function ConditionTree({ tree, set, problem }: Given) {
  const edit = (id: number, to: (draft: Draft) => Draft | null) => set(change(tree, id, to));
  return (
    <div>
      <Group group={tree} edit={edit} depth={1} />
      {problem !== undefined && (
        <p className="mt-2 text-[12.5px] text-bad" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}

type Edit = (id: number, to: (draft: Draft) => Draft | null) => void;

function Group({ group, edit, depth }: { group: GroupDraft; edit: Edit; depth: number }) {
  const add = (child: Draft) => edit(group.id, () => ({ ...group, children: [...group.children, child] }));
  return (
    <fieldset className="branch">
      <legend className="sr-only">{MODES[group.mode]}</legend>
      <div className="flex flex-wrap gap-2">
        <select
          className="input"
          aria-label="How its conditions count"
          value={group.mode}
          onChange={(event) => edit(group.id, () => ({ ...group, mode: event.target.value as Mode }))}
        >
          {Object.entries(MODES).map(([mode, words]) => (
            <option key={mode} value={mode}>
              {words}
            </option>
          ))}
        </select>
        {depth > 1 && (
          <Button look="quiet" onClick={() => edit(group.id, () => null)}>
            Remove group
          </Button>
        )}
      </div>
      {group.children.map((child) =>
        isGroup(child) ? (
          <Group key={child.id} group={child} edit={edit} depth={depth + 1} />
        ) : (
          <Leaf key={child.id} leaf={child} edit={edit} />
        ),
      )}
      <div className="flex gap-2">
        <Button look="quiet" onClick={() => add(newLeaf())}>
          Add condition
        </Button>
        {depth < DEPTH_MAX && (
          <Button look="quiet" onClick={() => add(newGroup())}>
            Add group
          </Button>
        )}
      </div>
    </fieldset>
  );
}

function Leaf({ leaf, edit }: { leaf: LeafDraft; edit: Edit }) {
  const set = (changed: Partial<LeafDraft>) => edit(leaf.id, () => ({ ...leaf, ...changed }));
  const pick = (field: string) => {
    const comparators = comparatorsOf(field);
    const comparator = comparators.includes(leaf.comparator) ? leaf.comparator : (comparators[0] ?? "equals");
    set({ field, comparator, value: FLAG_FIELDS.includes(field) ? "true" : leaf.value });
  };
  return (
    <div className="flex flex-wrap items-center gap-2">
      <select className="input" aria-label="Field" value={leaf.field} onChange={(event) => pick(event.target.value)}>
        {FIELDS.map((field) => (
          <option key={field} value={field}>
            {FIELD_WORDS[field]}
          </option>
        ))}
      </select>
      {leaf.field === "header" && (
        <input
          className="input w-[150px]"
          aria-label="Name of the header"
          placeholder="List-Id"
          value={leaf.header_name}
          onChange={(event) => set({ header_name: event.target.value })}
        />
      )}
      <select
        className="input"
        aria-label="Comparison"
        value={leaf.comparator}
        onChange={(event) => set({ comparator: event.target.value })}
      >
        {comparatorsOf(leaf.field).map((comparator) => (
          <option key={comparator} value={comparator}>
            {COMPARATOR_WORDS[comparator]}
          </option>
        ))}
      </select>
      <Value leaf={leaf} set={(value) => set({ value })} />
      <Button look="quiet" aria-label="Remove condition" onClick={() => edit(leaf.id, () => null)}>
        Remove
      </Button>
    </div>
  );
}

function Value({ leaf: { field, comparator, value }, set }: { leaf: LeafDraft; set: (value: string) => void }) {
  if (comparator === "exists" || FLAG_FIELDS.includes(field))
    return (
      <select
        className="input"
        aria-label="Value"
        value={value === "false" ? "false" : "true"}
        onChange={(event) => set(event.target.value)}
      >
        <option value="true">true</option>
        <option value="false">false</option>
      </select>
    );
  return (
    <input
      className={`input min-w-[140px] flex-1 ${comparator === "matches" ? "mono" : ""}`}
      aria-label="Value"
      placeholder={comparator === "in" ? "one, another" : comparator === "matches" ? "^invoice \\d+" : ""}
      value={value}
      onChange={(event) => set(event.target.value)}
    />
  );
}
