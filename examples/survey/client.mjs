// Answers made private where they are given: one module for browsers and Node (20 or newer), without dependencies.
//
// `optdp client --plan plan.json --language js` writes this file with a plan in it. `randomize(record)` makes the private record by
// the integer algorithm of the library, with random bits from the platform's cryptographic source; `statement` tells the person
// asked what this protects. What does not fit the plan is `Refused`, by column and reason, and no message ever holds a value.
//
// Bits. Everything is drawn from 32-bit words. A uniform integer below n takes as many bits b as n - 1 has: the top b
// of one word, or the top b - 32 of one and the whole next one below them; what is n or more is drawn again, and n = 1 takes no
// word. A coin compares 62 bits with the leading half of its 124-bit probability, and 62 more with the rest on a tie.
//
// Integers beyond 2^53 are two halves, [upper, lower 32 bits]; sums are ordered such that every one is an exact double.

const PLAN = {"digest":"5169bd2ed2c9e245e903864d221c2ed4bac523a7d68d65e52d62faacaf9e35ce","statement":"What you enter stays on this device; what is sent is drawn at random. Whatever is sent, your entries make it at most 7.39 times as likely as any other entries would, all of them together (local differential privacy, epsilon = 2). You answer once, because two answers together would tell more than one.","repeat":"once","reported":4,"columns":[{"name":"exercise","type":"number","lower":0.0,"upper":20.0,"clip":false,"whole":false,"unit":"hours","mechanism":{"step":1.1641532182693481e-10,"edges":[0,8641708666856,37578045011459,54931218416990,72284391822521,101375088178983,130465784535444,146661590358297,174513898075634,186170399970116,212770653206812,247593897646337,255816888849167,301555724946225,305160951826337,330066320072340,376167832422619,411250756085048,432692987893042,456304994228076,478055263770718,498972652085699,538573139182273,562949953421312,587326767660351,626927254756925,647844643071906,669594912614548,693206918949582,714649150757576,749732074420005,795833586770284,820738955016287,824344181896399,870083017993457,878306009196287,913129253635812,939729506872508,951386008766990,979238316484327,995434122307180,1024524818663641,1053615515020103,1070968688425634,1088321861831165,1117258198175768],"window":[131072,64779],"floor":[829111431,883870184,379142810,166814559],"kind":"mean","read":3.552713678800501e-15,"first":0,"last":5629499534213120,"lows":[-383556305756,-376397686355,-369239066954,-362080447552,-354921828151,-347763208749,-340604589348,-333445969946,-326287350545,-311970111742,-304811492340,-297652872939,-287668251042,-276177014734,-276177014734,-269018395333,-261859775931,-254701156530,-247542537128,-240383917727,-233225298325,-226066678924,-218908059522,383548131961,390706751362,397865370764,405023990165,412182609567,419341228968,426499848370,433658467771,440817087173,447975706574,459466942882,462292945377,469451564779,476610184180,490927422983,498086042385,505244661786,512403281188,519561900589,526720519991,533879139392,548196378195,548196378195],"highs":[-376397686355,-376397686355,-362080447552,-354921828151,-347763208749,-340604589348,-333445969946,-326287350545,-319128731143,-304811492340,-297652872939,-290494253537,-287668251042,-276177014734,-269018395333,-261859775931,-254701156530,-247542537128,-240383917727,-233225298325,-226066678924,-218908059522,-211749440121,390706751362,397865370764,405023990165,412182609567,419341228968,426499848370,433658467771,440817087173,447975706574,447975706574,459466942882,469451564779,476610184180,483768803582,498086042385,505244661786,512403281188,519561900589,526720519991,533879139392,541037758794,548196378195,555354997596],"coins":"16422243803501697484898628963096683359","starts":[0,8641708666856,24376814174259,37578045011459,54931218416990,63977301270833,72284391822521,84894689585814,101375088178983,106644959128456,130256965463490,130465784535444,146661590358297,151699197271484,174513898075634,186170399970116,186782120933913,212770653206812,232883633284192,247593897646337,255816888849167,257789001530195,261394228410307,301555724946225,305160951826337,307133064507365,315356055710195,330066320072340,350179300149720,376167832422619,376779553386416,388436055280898,411250756085048,416288362998235,432484168821088,432692987893042,456304994228076,461574865177549,478055263770718,490665561534011,498972652085699,508018734939542,525371908345073,538573139182273,554308244689676],"grids":[134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,33554432,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,33554432,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728]}},{"name":"age","type":"number","lower":16.0,"upper":100.0,"clip":false,"whole":true,"unit":"years","mechanism":{"step":4.656612873077393e-10,"edges":[0,8641708666856,37578045011459,54931218416990,72284391822521,101375088178983,130465784535444,146661590358297,174513898075634,186170399970116,212770653206812,247593897646337,255816888849167,301555724946225,305160951826337,330066320072340,376167832422619,411250756085048,432692987893042,456304994228076,478055263770718,498972652085699,538573139182273,562949953421312,587326767660351,626927254756925,647844643071906,669594912614548,693206918949582,714649150757576,749732074420005,795833586770284,820738955016287,824344181896399,870083017993457,878306009196287,913129253635812,939729506872508,951386008766990,979238316484327,995434122307180,1024524818663641,1053615515020103,1070968688425634,1088321861831165,1117258198175768],"window":[131072,64779],"floor":[829111431,883870184,379142810,166814559],"kind":"mean","read":1.4210854715202004e-14,"first":1125899906842624,"last":7036874417766400,"lows":[-368374382676,-360857832305,-353341281933,-345824731562,-338308181190,-330791630819,-323275080447,-315758530076,-308241979704,-293208878961,-285692328589,-278175778218,-267691925226,-255626127103,-255626127103,-248109576731,-240593026360,-233076475988,-225559925617,-218043375245,-210526824874,-203010274502,-195493724130,437085276927,444601827298,452118377670,459634928042,467151478413,474668028785,482184579156,489701129528,497217679899,504734230271,516800028394,519767331014,527283881386,534800431757,549833532500,557350082872,564866633244,572383183615,579899733987,587416284358,594932834730,609965935473,609965935473],"highs":[-360857832305,-360857832305,-345824731562,-338308181190,-330791630819,-323275080447,-315758530076,-308241979704,-300725429332,-285692328589,-278175778218,-270659227846,-267691925226,-255626127103,-248109576731,-240593026360,-233076475988,-225559925617,-218043375245,-210526824874,-203010274502,-195493724130,-187977173759,444601827298,452118377670,459634928042,467151478413,474668028785,482184579156,489701129528,497217679899,504734230271,504734230271,516800028394,527283881386,534800431757,542316982129,557350082872,564866633244,572383183615,579899733987,587416284358,594932834730,602449385101,609965935473,617482485844],"coins":"16422243803501697484898628963096683359","starts":[0,8641708666856,24376814174259,37578045011459,54931218416990,63977301270833,72284391822521,84894689585814,101375088178983,106644959128456,130256965463490,130465784535444,146661590358297,151699197271484,174513898075634,186170399970116,186782120933913,212770653206812,232883633284192,247593897646337,255816888849167,257789001530195,261394228410307,301555724946225,305160951826337,307133064507365,315356055710195,330066320072340,350179300149720,376167832422619,376779553386416,388436055280898,411250756085048,416288362998235,432484168821088,432692987893042,456304994228076,461574865177549,478055263770718,490665561534011,498972652085699,508018734939542,525371908345073,538573139182273,554308244689676],"grids":[134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,33554432,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,33554432,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728,134217728]}},{"name":"travel","type":"category","flag":false,"values":["on foot","bicycle","bus or train","car"],"texts":[],"missing":null,"other":null,"mechanism":{"kind":"set","size":1,"universe":4,"own":[408735774,2778379125,433708729,2410901258]}},{"name":"smoker","type":"category","flag":true,"values":[0,1],"texts":[],"missing":null,"other":null,"mechanism":{"kind":"set","size":1,"universe":2,"own":[658349896,1260357986,905781681,709612113]}}],"units":[{"columns":[0],"eps":0.46379852294921875},{"columns":[1],"eps":0.46379852294921875},{"columns":[2],"eps":0.6118850708007812},{"columns":[3],"eps":0.4605140686035156}]};

/** What the plan promises, in words for the person asked; which plan it is; once or memoised. */
export const statement = PLAN.statement, digest = PLAN.digest, repeat = PLAN.repeat;
/** What the fields are, for forms: {name, type, lower, upper, unit, first, last, values}. */
export const columns = (PLAN.columns ?? []).map(({ mechanism, eps, texts, ...rest }) => rest);

/** A record that the plan does not allow, or an answer beyond what it promised; the message holds no value. */
export class Refused extends Error {
  name = "Refused";
}

const HALF = 2 ** 32, CELLS = 2 ** 50, LIMB = 2 ** 62, TOP = 2 ** 30 - 1;

// --- random integers

const pool = new Uint32Array(4096);
let used = pool.length;

function fresh() {
  if (used === pool.length) {
    globalThis.crypto.getRandomValues(pool);
    used = 0;
  }
  const word = pool[used];
  pool[used++] = 0;
  return word;
}

let next = fresh;
let upper = 0; // the upper half of what `below` drew last

/** The lower half of a uniform integer from 0 to [high, low]. */
function below(high, low) {
  upper = 0;
  if (high === 0) {
    if (low === 0) return 0;
    const shift = Math.clz32(low);
    for (;;) {
      const drawn = next() >>> shift;
      if (drawn <= low) return drawn;
    }
  }
  const shift = Math.clz32(high);
  for (;;) {
    upper = next() >>> shift;
    const drawn = next();
    if (upper < high || (upper === high && drawn <= low)) return drawn;
  }
}

/** True with the probability whose two halves of 62 bits are [c0, c1] and [c2, c3]; always for null. */
function coin(cuts) {
  if (cuts === null) return true;
  let high = next() >>> 2, low = next();
  if (high !== cuts[0]) return high < cuts[0];
  if (low !== cuts[1]) return low < cuts[1];
  if (cuts[2] === 0 && cuts[3] === 0) return false;
  high = next() >>> 2;
  low = next();
  return high === cuts[2] ? low < cuts[3] : high < cuts[2];
}

// --- mechanisms: (their data, the input) -> what is sent

const clip = (v, low, high) => Math.min(Math.max(v, low), high);

/** The nearest integer, the even one on ties. */
function nearest(v) {
  const up = Math.round(v);
  return up - v === 0.5 && up % 2 !== 0 ? up - 1 : up;
}

/** The number of entries of a sorted array that are at most v. */
function upTo(sorted, v) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle] <= v) low = middle + 1;
    else high = middle;
  }
  return low;
}

const draw = {
  /** Uniform over the numbers of a lattice, or over those of a window around the input. */
  piecewise(m, x) {
    const { first, last, final, window } = m;
    const at = clip(nearest(x / m.step), first, last);
    const low = below(m.span[0], m.span[1]);
    const far = first + upper * HALF + low;
    const floor = coin(m.floor);
    let start;
    if (m.slope === null) start = clip(at - m.half, first, final);
    else {
      const least = Math.max(at - window[0] * HALF - window[1], first);
      start = Math.min(Math.max(first + Math.trunc((at - first) * m.slope), least), Math.min(at, final));
    }
    const more = below(window[0], window[1]);
    return (floor ? far : start + upper * HALF + more) * m.step;
  },

  /** A cell of the floor, or of a window whose ends the input divides, and the number of the lattice that it stands for. */
  ends(m, x) {
    const low = below(CELLS / HALF - 1, HALF - 1);
    let cell = upper * HALF + low;
    const floor = coin(m.floor), share = (x - m.lower) / m.width, [left, right, start, end] = m.map;
    const k = Math.max(upTo(left, share) - 1, 0), t = (share - left[k]) / (right[k] - left[k]);
    const near = clip(Math.trunc(start[k] + (Number.isNaN(t) ? 0 : clip(t, 0, 1)) * (end[k] - start[k])), 0, m.final);
    const more = below(m.window[0], m.window[1]);
    if (!floor) cell = near + upper * HALF + more;
    const piece = upTo(m.edges, cell) - 1;
    return clip(m.starts[piece] + nearest(m.slopes[piece] * (2 * (cell - m.edges[piece]) + 1)), m.first, m.last) * m.step;
  },

  /**
   * A cell of the floor, or of a window that makes the input the mean, and a number of the lattice next to it. Where the window
   * starts, and which of two numbers is sent, are coins with exact chances; floats toss them where they are sure.
   */
  mean(m, x) {
    const low = below(CELLS / HALF - 1, HALF - 1);
    let cell = upper * HALF + low;
    const floor = coin(m.floor), start = startOf(m, clip(nearest(x / m.read), m.first, m.last));
    const more = below(m.window[0], m.window[1]);
    if (!floor) cell = start + upper * HALF + more;
    const last = below(TOP, HALF - 1), first = upper, toss = (first * HALF + last) / LIMB;
    const piece = upTo(m.edges, cell) - 1, rise = m.highs[piece] - m.lows[piece], middle = 2 * (cell - m.edges[piece]) + 1;
    const moved = (rise / (2 * m.cells[piece])) * middle + toss;
    if (Math.abs(moved - Math.round(moved)) >= (moved + 1) * 2 ** -49) return (m.lows[piece] + Math.floor(moved)) * m.step;
    const along = BigInt(rise) * BigInt(middle), whole = 2n * BigInt(m.cells[piece]);
    const up = tossed(2n ** 62n - 1n - big(first, last), along % whole, whole);
    return (m.lows[piece] + Number(along / whole) + up) * m.step;
  },

  /** A set of categories with the own one in it or not, the others uniform (Floyd's algorithm); sorted. */
  set(m, x) {
    const { size, universe } = m, own = coin(m.own);
    if (size === 1) {
      const other = below(0, universe - 2);
      return [own ? x : other + (other >= x)];
    }
    const chosen = new Set();
    for (let k = own ? 1 : 0; k < size; k++) {
      const top = universe - 1 - size + k;
      const drawn = below(0, top);
      chosen.add(chosen.has(drawn) ? top : drawn);
    }
    if (chosen.has(x)) chosen.add(universe - 1); // the own category is renamed to the last one, which was not drawn
    if (own) chosen.add(x);
    else chosen.delete(x);
    return [...chosen].sort((a, b) => a - b);
  },

  /** Two integers a, b that stand for the set of all c with a c + b mod q below the size. */
  affine(m, x) {
    const { size, universe: q } = m, own = coin(m.own);
    const slope = 1 + below(0, q - 2);
    const inside = below(0, size - 1);
    const outside = size + below(0, q - size - 1);
    const b = ((own ? inside : outside) - slope * x) % q;
    return [slope, b < 0 ? b + q : b];
  },
};

// --- windows with exact means

const big = (high, low) => BigInt(high) * 2n ** 32n + BigInt(low);

/** Whether a uniform number with these 62 leading bits is below top/bottom; a tie is tossed on. */
function tossed(toss, top, bottom) {
  for (;;) {
    const cut = (top << 62n) / bottom;
    top = (top << 62n) % bottom;
    if (toss !== cut || top === 0n) return toss < cut;
    const low = below(TOP, HALF - 1);
    toss = big(upper, low);
  }
}

/** The first cell of a window: one of the two nodes around the input, such that the mean is the input. */
function startOf(m, at) {
  const last = below(TOP, HALF - 1), first = upper, toss = (first * HALF + last) / LIMB;
  const mean = at / m.scale, k = upTo(m.means, mean) - 1;
  if (k >= 0) {
    const left = m.means[k], rate = m.rates[k], bend = m.bends[k], length = m.lengths[k], beyond = mean - left;
    const root = rate + Math.sqrt(Math.max(rate * rate + 4 * bend * beyond, 0));
    const low = Math.min(Math.floor(Math.min((2 * beyond) / root, length) / m.grids[k]) * m.grids[k], length);
    const high = Math.min(low + m.grids[k], length), step = (high - low) * (rate + bend * (low + high));
    if (step > 0) {
      const chance = (beyond - low * (rate + bend * low)) / step;
      const size = Math.abs(mean) + Math.abs(left) + (rate + Math.abs(bend) * length) * length;
      const margin = (size * 2 ** -44) / step + 2 ** -45;
      if (Math.abs(toss - chance) > margin && chance > margin && chance < 1 - margin) {
        return m.starts[k] + (toss < chance ? high : low);
      }
    }
  }
  return exactStart(m, BigInt(at), big(first, last));
}

/** The same in integers. */
function exactStart(m, at, toss) {
  const mean = at * m.unit;
  const reached = (start) => {
    const [top, bottom] = exactMean(m, start);
    return top <= mean * bottom;
  };
  /** The number of nodes from the first one on that are reached; all after them are not. */
  const count = (size, node) => {
    let low = 0, high = size;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (reached(node(middle))) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const k = count(m.starts.length, (i) => m.starts[i]) - 1;
  if (k < 0) return m.starts[0];
  const start = m.starts[k], grid = m.grids[k], length = m.lengths[k], [first, bottom] = exactMean(m, start);
  if (first === mean * bottom || length === 0) return start;
  const low = (count(Math.ceil(length / grid), (i) => start + i * grid) - 1) * grid, high = Math.min(low + grid, length);
  const [a, b] = exactMean(m, start + low), [c, d] = exactMean(m, start + high);
  const top = (mean * b - a) * d, all = c * b - a * d;
  return start + (all > 0n && tossed(toss, top < all ? top : all, all) ? high : low);
}

/** The mean of what is sent with the window at a cell, times `unit`, as a fraction. */
function exactMean(m, start) {
  const [a, b] = under(m, start), [c, d] = under(m, start + m.size);
  return [m.far * b * d + m.near * (c * b - a * d), b * d];
}

/** Twice the sum over all cells before this one of what they stand for, as a fraction. */
function under(m, cell) {
  const piece = upTo(m.edges, cell) - 1, low = BigInt(m.lows[piece]), rise = BigInt(m.highs[piece]) - low;
  const count = BigInt(m.cells[piece]), within = BigInt(cell - m.edges[piece]);
  return [m.sums[piece] * count + within * (2n * low * count + rise * within), count];
}

/** How far apart the ends of a window are, from a cell in piece i to one in piece j, as a fraction. */
function apart(m, i, j, low, high) {
  const [[a, n], [b, k]] = [[i, low], [j, high]].map(([piece, cell]) => {
    const first = BigInt(m.lows[piece]), count = BigInt(m.cells[piece]);
    return [first * count + (BigInt(m.highs[piece]) - first) * BigInt(cell - m.edges[piece]), count];
  });
  return [b * n - a * k, n * k];
}

/** A quotient of integers of any size as a number, to 2^-60 of itself. */
function quotient(top, bottom) {
  if (top < 0n) return -quotient(-top, bottom);
  if (top === 0n) return 0;
  const shift = 64 - top.toString(2).length + bottom.toString(2).length;
  return shift >= 0 ? Number((top << BigInt(shift)) / bottom) / 2 ** shift : Number(top / (bottom << BigInt(-shift))) * 2 ** -shift;
}

/** What `mean` looks up: sums in integers, and on each stretch of starts how the mean moves, in floats. */
function readyMean(m) {
  const after = (a, last) => a.map((v, i) => (i + 1 < a.length ? a[i + 1] : last) - v);
  m.size = m.window[0] * HALF + m.window[1] + 1;
  m.cells = after(m.edges, CELLS);
  m.lengths = after(m.starts, m.final);
  m.scale = m.step / m.read;
  m.sums = [0n];
  m.cells.forEach((count, i) => m.sums.push(m.sums[i] + (BigInt(m.lows[i]) + BigInt(m.highs[i])) * BigInt(count)));
  const coins = BigInt(m.coins), width = BigInt(m.size), scale = BigInt(m.scale), all = 2n ** 124n;
  // The mean is coins/2^124 times the floor's, which is the last sum/(2 cells), and the rest times the window's.
  m.far = coins * width * m.sums.pop() * scale;
  m.near = (all - coins) * BigInt(CELLS) * scale;
  m.unit = 2n * all * BigInt(CELLS) * width;
  const speed = quotient(all - coins, all * width);
  m.means = m.starts.map((start) => {
    const [top, bottom] = exactMean(m, start);
    return quotient(top, bottom * m.unit * scale);
  });
  const ends = m.starts.map((start, k) => {
    const [i, j] = [start, start + m.size].map((cell) => upTo(m.edges, cell) - 1);
    return [0, m.lengths[k]].map((moved) => apart(m, i, j, start + moved, start + moved + m.size));
  });
  m.rates = ends.map(([[top, bottom]]) => speed * quotient(top, bottom));
  m.bends = ends.map(([[a, b], [c, d]], k) => (m.lengths[k] ? (speed * quotient(c * b - a * d, b * d)) / (2 * m.lengths[k]) : 0));
}

// --- entries

const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/, DAY = /^([0-9]{4})-([0-9]{2})-([0-9]{2})([T ][^\n]*)?$/;
/** Without the white space that may stand around numbers and flags: other languages have other lists of spaces. */
const strip = (text) => text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, "");
const WORDS = new Map([["true", 1], ["yes", 1], ["1", 1], ["false", 0], ["no", 0], ["0", 0]]);

function refuse(why) {
  throw new Refused(why);
}

/** The number of days since 1970-01-01; NaN for what is no date. */
function day(text) {
  const found = typeof text === "string" ? DAY.exec(text) : null;
  if (found === null) return NaN;
  const [y, m, d] = [+found[1], +found[2], +found[3]], date = new Date(0);
  date.setUTCFullYear(y, m - 1, d);
  return y > 0 && date.getUTCMonth() === m - 1 && date.getUTCDate() === d ? date.getTime() / 86400000 : NaN;
}

const read = {
  number(column, value) {
    if (typeof value !== "number") {
      if (value === undefined || value === null || value === "") refuse("it is missing");
      if (typeof value !== "string" || !NUMBER.test((value = strip(value)))) refuse("it is not a number (a missing entry is left empty)");
      value = Number(value);
    }
    if (Number.isNaN(value)) refuse("it is missing");
    if (!(value >= column.lower && value <= column.upper)) {
      if (!column.clip) refuse("it is out of range");
      value = clip(value, column.lower, column.upper);
    }
    if (column.whole && !Number.isInteger(value)) refuse("it is not an integer");
    return value;
  },

  date(column, value) {
    if (value === undefined || value === null || value === "") refuse("it is missing");
    const days = day(value) - column.start;
    if (Number.isNaN(days)) refuse("it is not a date: it must be written 2026-01-31");
    return read.number(column, days);
  },

  /**
   * The place of an entry: of the category that it is, or is written like, or that is the same number. Tables make numbers of texts,
   * and files texts of numbers: 1 is the text "1" if no other category is this number, "1.0" is the number 1.
   */
  category(column, value) {
    const text = typeof value === "string", number = typeof value === "number" || typeof value === "bigint";
    if (text && column.flag) value = WORDS.get(strip(value).toLowerCase()) ?? value;
    if (typeof value === "boolean" || number) value = Number(value);
    let found = typeof value === "string" || typeof value === "number" ? column.places.get(value) : undefined;
    if (found !== undefined) return found;
    const missing = value === undefined || value === null || value === "" || Number.isNaN(value);
    if (missing) return column.missing ?? refuse("it is missing");
    const read = text && NUMBER.test(strip(value)) ? Number(strip(value)) : number ? value : NaN;
    if (Math.abs(read) < 2 ** 53) found = (text ? column.places : column.numbers).get(read);
    if (found === -1) refuse("it is a number that several values are written like: it must be a text");
    if (found === undefined && column.other === null) refuse("it is none of the values of the plan");
    if (found === undefined && !text && !number) refuse("it is neither a text nor a number");
    return found ?? column.other;
  },
};

for (const column of PLAN.columns ?? []) {
  const m = column.mechanism;
  if (column.type === "date") column.start = day(column.first);
  if (column.type === "category") {
    if (!column.texts.length) column.texts = column.values.map(String);
    column.places = new Map([...column.values.entries(), ...column.texts.entries()].map(([i, v]) => [v, i]));
    column.numbers = new Map();
    column.texts.forEach((v, i) => {
      if (NUMBER.test(v)) column.numbers.set(Number(v), column.numbers.has(Number(v)) ? -1 : i);
    });
  }
  if (m.kind === "piecewise") {
    m.final = m.last - m.window[0] * HALF - m.window[1];
    m.half = m.window[0] * (HALF / 2) + Math.floor((m.window[1] + 1) / 2);
  }
  if (m.kind === "ends" || m.kind === "mean") m.final = CELLS - 1 - m.window[0] * HALF - m.window[1];
  if (m.kind === "mean") readyMean(m);
}

const names = new Set(columns.map((column) => column.name));

/** What the mechanisms read; `Refused` for what the plan does not allow. */
function inputs(record) {
  if (typeof record !== "object" || record === null) refuse("the record must have named fields");
  for (const name of Object.keys(record)) {
    if (!names.has(name)) refuse(`the record has a field that the plan does not know; it is for ${[...names].join(", ")} alone`);
  }
  const found = [];
  for (const column of PLAN.columns) {
    try {
      found.push(read[column.type](column, Object.hasOwn(record, column.name) ? record[column.name] : null));
    } catch (error) {
      throw error instanceof Refused ? new Refused(`${column.name}: ${error.message}`) : error;
    }
  }
  return found;
}

function drawn(column, x) {
  const m = column.mechanism, y = draw[m.kind](m, x);
  if (typeof y === "number") return y;
  return m.kind === "set" && m.size === 1 ? column.texts[y[0]] : y.join(" ");
}

/** The private entries of columns that are reported together: of one, or all true, or all uniform. */
function drawnUnit(unit, found) {
  const own = unit.columns.map((j) => PLAN.columns[j]);
  if (own.length === 1) return [drawn(own[0], found[0])];
  const all = coin(unit.true);
  return own.map((column, i) => {
    const other = below(0, column.mechanism.universe - 1);
    return column.texts[all ? found[i] : other];
  });
}

/** Which units are reported: a uniform set of as many as the plan says. */
function choose() {
  const k = PLAN.units.length, out = [];
  let left = PLAN.reported;
  for (let j = 0; j < k; j++) {
    out.push(below(0, k - j - 1) < left);
    if (out[j]) left--;
  }
  return out;
}

const KEY = `optdp:${PLAN.digest}`;

function stateOf(storage) {
  const text = storage.getItem(KEY);
  return text === null || text === undefined ? null : JSON.parse(text);
}

/**
 * The private record: numbers, texts, and null for what is not reported.
 *
 * record: an entry for each of `columns`. storage: with getItem(name) and setItem(name, text), as localStorage has; it stays with
 * this person on this device. A plan that is answered once refuses a second answer there (without storage the caller sees to it);
 * a memoised one needs it, and gives the same private entry as long as, and whenever, the true one is the same.
 */
export function randomize(record, storage) {
  const found = inputs(record), memoised = PLAN.repeat === "memoised";
  const stored = storage !== undefined && storage !== null;
  if (memoised && !stored) throw new TypeError("storage is missing: this plan keeps its answers there");
  let state = stored ? stateOf(storage) : null;
  if (state !== null && !memoised) refuse("this plan is answered once, and has been: answered(storage) is what was sent");
  state ??= { chosen: choose(), kept: PLAN.units.map(() => ({})) };
  const out = {};
  for (const column of PLAN.columns) out[column.name] = null;
  PLAN.units.forEach((unit, j) => {
    const own = unit.columns.map((i) => found[i]), kept = state.kept[j], key = memoised ? `=${own}` : "=";
    const sent = Object.hasOwn(kept, key) ? kept[key] : drawnUnit(unit, own);
    if (!state.chosen[j]) return;
    kept[key] = sent;
    unit.columns.forEach((i, place) => { out[PLAN.columns[i].name] = sent[place]; });
  });
  state.last = out;
  if (stored) storage.setItem(KEY, JSON.stringify(state)); // first kept, then sent
  return out;
}

/** For tests: the same with the 32-bit words that `source` returns one by one, which protect nobody. */
export function replay(record, source, storage) {
  next = source;
  try {
    return randomize(record, storage);
  } finally {
    next = fresh;
  }
}

/** The private record that was last made for this storage, to be sent again if it was lost; null if there is none. */
export function answered(storage) {
  return stateOf(storage)?.last ?? null;
}

/** The epsilon that all answers from this storage have together: that of each different entry that was answered. */
export function spent(storage) {
  const state = stateOf(storage);
  if (state === null) return 0;
  return PLAN.units.reduce((sum, { eps }, j) => sum + Object.keys(state.kept[j]).length * eps, 0);
}

/** The private record as a line of JSON with the plan's digest, as `optdp collect` reads it. */
export function line(record, storage) {
  return JSON.stringify({ optdp: PLAN.digest, ...randomize(record, storage) });
}
