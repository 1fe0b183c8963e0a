// The words that aliases of the format `words` are made of: short, common, easy to spell, about nobody.

export const WORDS: readonly string[] = (
  "amber anchor apple arrow aspen autumn badge baker balsa bamboo barley basil beach beacon berry birch bison " +
  "blossom bottle branch breeze brick bridge bronze brook bucket butter button cabin cactus camel candle canoe " +
  "canvas canyon carbon cargo carpet castle cedar cello chalk cherry chess cinder circle citrus clay cliff " +
  "cloud clover coast cobalt cocoa comet compass copper coral corner cotton crane crater cricket crystal " +
  "curtain cypress dahlia daisy dawn delta desert diesel dolphin domino dragon drum dune eagle east echo elbow " +
  "elder ember engine falcon feather fennel fern field finch fjord flame flint flute forest fossil fountain fox " +
  "galaxy garden garlic garnet geyser ginger glacier glass globe granite grape gravel grove guitar gull hammer " +
  "harbor harvest hazel heron hill honey horizon hornet ice indigo iris iron island ivory ivy jacket jade " +
  "jasmine jasper jungle juniper kayak kettle kite lagoon lake lantern lark lava leaf lemon lentil lily linen " +
  "lizard lotus lunar magnet mango maple marble marsh meadow melon meteor mint mirror mist moon moss mountain " +
  "nectar needle nest north nutmeg oak oasis oat ocean olive onyx opal orange orbit orchid otter owl oyster " +
  "paddle panda paper parade pearl pebble pepper petal piano pigeon pine planet plum pocket pollen pond poplar " +
  "poppy prairie prism puzzle quail quartz quill rabbit radish rain raven reef ribbon river robin rocket rose " +
  "ruby saddle saffron sage sail salmon sand sapphire scarf seal shadow shell silk silver sky slate snow solar " +
  "sparrow spice spider spring spruce star stone storm stream sugar summer sun swan tango teal tempo thistle " +
  "thunder tiger timber topaz trail tulip tundra turtle umbra valley vanilla velvet vine violet walnut water " +
  "wave west whale wheat willow wind window winter wolf wren yarrow zebra zephyr zinc"
).split(" ");
