/* SPDX-License-Identifier: MIT */
/*
 * One SVG file that needs nothing else: the root on top and callers above what they call, or the
 * other way round, widths in proportion to bytes. Without a script it is a picture with a text for
 * every box (hover shows it, a screen reader reads it). The script adds zoom, search and the line
 * that follows the pointer; it holds no text of the file, and takes what it shows from the boxes as
 * text.
 *
 * Each box carries its place in bytes (data-o, data-b, data-d: offset, bytes, depth), so that zoom
 * is exact. Boxes too narrow to see are omitted; their number and bytes are shown.
 */
#include "render/flame_svg.h"

#include "base/assertion.h"
#include "base/escaped.h"
#include "base/size_text.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

enum {
    WIDTH = 1200,
    MARGIN = 10,
    INNER = WIDTH - 2 * MARGIN,
    TOP = 92, /* of the root's row */
    ROW = 17,
    CHARACTER = 7 /* width of one, about */
};

/* Narrower boxes are left out. */
#define WIDTH_MIN 0.1

static const char style[] =
    "<style>\n"
    "svg{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:12px}\n"
    "text{fill:#1c1c1c}\n"
    ".h{font-size:17px;font-weight:bold}\n"
    ".f text{pointer-events:none}\n"
    ".f rect{stroke:#fff;stroke-width:.5}\n"
    ".on .f{cursor:pointer}\n"
    ".f:hover rect,.f:focus rect{stroke:#000;stroke-width:1}\n"
    ".f:focus{outline:none}\n"
    ".m rect{fill:#d65bd6}\n"
    ".a{opacity:.5}\n"
    ".b{fill:#1a56b0;text-decoration:underline;cursor:pointer;visibility:hidden}\n"
    ".on .b{visibility:visible}\n"
    "</style>\n";

/* Zoom: click or Enter on a box; reset: click on the root, or Escape. Search: "/" or Ctrl-F or a
 * click on it, then type; Enter ends it, Escape takes it back. */
static const char script[] =
    "<script><![CDATA[\n"
    "(function(){'use strict';\n"
    "var svg=document.documentElement,boxes=[].slice.call(document.querySelectorAll('.f'));\n"
    "if(svg.nodeName!=='svg'||!boxes.length)return;\n"
    "var W=1180,M=10,C=7,line=document.getElementById('line');\n"
    "var search=document.getElementById('search'),found=document.getElementById('found');\n"
    "var reset=document.getElementById('reset'),typing=false,word='';\n"
    "svg.setAttribute('class','on');\n"
    "var items=boxes.map(function(g){var t=g.querySelector('title').textContent;\n"
    " return{g:g,r:g.querySelector('rect'),t:g.querySelector('text'),full:t,\n"
    "  name:t.slice(0,t.lastIndexOf(' (')),o:+g.getAttribute('data-o'),\n"
    "  b:+g.getAttribute('data-b'),d:+g.getAttribute('data-d')};});\n"
    "var root=items[0];\n"
    "function label(i,w){var n=Math.floor((w-6)/C),c=Array.from(i.name);\n"
    " if(!i.t){i.t=document.createElementNS('http://www.w3.org/2000/svg','text');\n"
    "  i.t.setAttribute('y',+i.r.getAttribute('y')+12);i.g.appendChild(i.t);}\n"
    " i.t.textContent=n<3?'':c.length<=n?i.name:c.slice(0,n-2).join('')+'..';}\n"
    "function zoom(to){items.forEach(function(i){\n"
    " var above=i.d<to.d&&i.o<=to.o&&i.o+i.b>=to.o+to.b,\n"
    "  inside=i.d>=to.d&&i.o>=to.o&&i.o+i.b<=to.o+to.b&&(i.d>to.d||i===to);\n"
    " i.g.style.display=above||inside?'':'none';i.g.classList.toggle('a',above);\n"
    " if(!above&&!inside)return;\n"
    " var x=above?0:(i.o-to.o)/to.b*W,w=above?W:i.b/to.b*W;\n"
    " i.r.setAttribute('x',M+x);i.r.setAttribute('width',w);label(i,w);\n"
    " i.t.setAttribute('x',M+x+3);});\n"
    " reset.style.display=to===root?'none':'';}\n"
    "function matcher(){try{var e=new RegExp(word,'i');return function(n){return e.test(n);};}\n"
    " catch(x){var l=word.toLowerCase();\n"
    "  return function(n){return n.toLowerCase().indexOf(l)>=0;};}}\n"
    "function mark(){var is=word?matcher():function(){return false;},end=0,sum=0,count=0;\n"
    " items.map(function(i){var m=is(i.name);i.g.classList.toggle('m',m);\n"
    "  count+=m;return m?i:null;}).filter(Boolean)\n"
    "  .sort(function(a,b){return a.o-b.o||b.b-a.b;}).forEach(function(i){\n"
    "   var from=Math.max(i.o,end),to=i.o+i.b;if(to>from){sum+=to-from;end=to;}});\n"
    " search.textContent=typing||word?'search: '+word+(typing?'_':''):'search (/)';\n"
    " found.textContent=word?count+' boxes match, '+(100*sum/root.b).toFixed(1)+\n"
    "  '% of all bytes ('+sum+')':'';}\n"
    "function box(e){var g=e.target.closest?e.target.closest('.f'):null;\n"
    " return g?items[boxes.indexOf(g)]:null;}\n"
    "svg.addEventListener('click',function(e){var i=box(e);if(i)zoom(i);});\n"
    "svg.addEventListener('mouseover',function(e){var i=box(e);\n"
    " line.textContent=i?i.full:'';});\n"
    "svg.addEventListener('focusin',function(e){var i=box(e);if(i)line.textContent=i.full;});\n"
    "reset.addEventListener('click',function(){zoom(root);});\n"
    "search.addEventListener('click',function(){typing=true;mark();});\n"
    "window.addEventListener('keydown',function(e){\n"
    " if(!typing){if(e.key==='/'||e.key==='f'&&(e.ctrlKey||e.metaKey)){\n"
    "   typing=true;e.preventDefault();mark();}\n"
    "  else if(e.key==='Escape')zoom(root);\n"
    "  else if(e.key==='Enter'){var i=box(e);if(i)zoom(i);}\n"
    "  return;}\n"
    " if(e.key==='Enter')typing=false;\n"
    " else if(e.key==='Escape'){typing=false;word='';}\n"
    " else if(e.key==='Backspace')word=word.slice(0,-1);\n"
    " else if(e.key.length===1&&!e.ctrlKey&&!e.metaKey)word+=e.key;\n"
    " else return;\n"
    " e.preventDefault();mark();});\n"
    "boxes.forEach(function(g){g.setAttribute('tabindex','0');});\n"
    "mark();zoom(root);})();\n"
    "]]></script>\n";

/* What the picture leaves out. */
struct left_out {
    uint64_t boxes;
    uint64_t bytes; /* of those whose parent is drawn */
};

static double width_of(const struct tn_flame *flame, const struct tn_flame_node *node)
{
    return (double)node->bytes / (double)tn_flame_node(flame, 0)->bytes * INNER;
}

static bool is_drawn(const struct tn_flame *flame, const struct tn_flame_node *node)
{
    return width_of(flame, node) >= WIDTH_MIN;
}

static struct left_out left_out_count(const struct tn_flame *flame)
{
    struct left_out left = {0, 0};

    for (uint32_t i = 1; i < flame->nodes.count; i++) {
        const struct tn_flame_node *node = tn_flame_node(flame, i);

        if (!is_drawn(flame, node)) {
            left.boxes++;
            if (is_drawn(flame, tn_flame_node(flame, node->parent))) {
                left.bytes += node->bytes;
            }
        }
    }
    return left;
}

static unsigned depth_drawn(const struct tn_flame *flame)
{
    unsigned depth = 0;

    for (uint32_t i = 1; i < flame->nodes.count; i++) {
        const struct tn_flame_node *node = tn_flame_node(flame, i);

        if (node->depth > depth && is_drawn(flame, node)) {
            depth = node->depth;
        }
    }
    return depth;
}

/* Colours are for telling neighbours apart: the same text has the same everywhere. */
static void colour_put(struct tn_text_out *out, const struct tn_flame_label *label)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < label->length; i++) {
        hash = (hash ^ (unsigned char)label->text[i]) * 16777619u;
    }
    switch ((enum tn_flame_kind)label->kind) {
    case TN_FLAME_PLACE:
        tn_text_printf(out, "hsl(%u,45%%,%u%%)", 200 + hash % 24, 72 + hash / 32 % 8);
        return;
    case TN_FLAME_FRAME:
        tn_text_printf(out, "hsl(%u,72%%,%u%%)", 14 + hash % 36, 64 + hash / 64 % 12);
        return;
    case TN_FLAME_NOTHING:
        tn_text_printf(out, "hsl(0,0%%,%u%%)", 82 + hash % 6);
        return;
    }
}

/* As many characters as fit into the box. */
static void caption_put(struct tn_text_out *out, const struct tn_flame_label *label, double width)
{
    const size_t room = width < 6 ? 0 : (size_t)((width - 6) / CHARACTER);
    size_t all = 0;
    size_t cut = 0; /* bytes of the first room - 2 characters */

    if (room < 3) {
        return;
    }
    for (size_t at = 0; at < label->length; all++) {
        uint32_t code;

        if (all == room - 2) {
            cut = at;
        }
        const size_t count = tn_utf8_decode(label->text + at, label->length - at, &code);
        at += tn_always(count > 0) ? count : 1; /* a label is as it is shown */
    }
    tn_text_put_escaped(out, label->text, all <= room ? label->length : cut, TN_ESCAPED_XML);
    tn_text_puts(out, all <= room ? "" : "..");
}

/* `row` counts from the top. */
static void box_put(struct tn_text_out *out, const struct tn_flame *flame,
                    const struct tn_flame_node *node, unsigned row)
{
    const double all = (double)tn_flame_node(flame, 0)->bytes;
    const struct tn_flame_label *label = tn_flame_label(flame, node->label);
    const double x = MARGIN + (double)node->offset / all * INNER;
    const unsigned y = TOP + row * ROW;

    tn_text_printf(out,
                   "<g class=\"f\" data-o=\"%" PRIu64 "\" data-b=\"%" PRIu64 "\" data-d=\"%" PRIu32
                   "\"><title>",
                   node->offset, node->bytes, node->depth);
    tn_text_put_escaped(out, label->text, label->length, TN_ESCAPED_XML);
    tn_text_printf(out, " (%s, %.2f%%, %" PRIu64 " bytes)</title>",
                   tn_text_size(out, (double)node->bytes).text, (double)node->bytes / all * 100,
                   node->bytes);
    tn_text_printf(out, "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" fill=\"", x, y,
                   width_of(flame, node), ROW - 1);
    colour_put(out, label);
    tn_text_printf(out, "\"/><text x=\"%.2f\" y=\"%u\">", x + 3, y + 12);
    caption_put(out, label, width_of(flame, node));
    tn_text_puts(out, "</text></g>\n");
}

static void head_put(struct tn_text_out *out, const struct tn_flame *flame, const char *title)
{
    const unsigned height = TOP + (depth_drawn(flame) + 1) * ROW + 2 * MARGIN;

    tn_text_printf(out,
                   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
                   "viewBox=\"0 0 %d %u\">\n<title>",
                   WIDTH, height, WIDTH, height);
    tn_text_put_escaped(out, title, strlen(title), TN_ESCAPED_XML);
    tn_text_puts(out, "</title>\n");
    tn_text_puts(out, style);
    tn_text_printf(out,
                   "<rect x=\"0\" y=\"0\" width=\"%d\" height=\"%u\" fill=\"#fdfdfd\"/>\n"
                   "<text class=\"h\" x=\"%d\" y=\"26\">",
                   WIDTH, height, MARGIN);
    tn_text_put_escaped(out, title, strlen(title), TN_ESCAPED_XML);
    tn_text_puts(out, "</text>\n");
}

static void notes_put(struct tn_text_out *out, const struct tn_flame *flame)
{
    const uint64_t bytes = tn_flame_node(flame, 0)->bytes;
    const struct left_out left = bytes ? left_out_count(flame) : (struct left_out){0, 0};

    tn_text_printf(out, "<text x=\"%d\" y=\"46\">%s in total (%" PRIu64 " bytes)", MARGIN,
                   tn_text_size(out, (double)bytes).text, bytes);
    if (left.boxes > 0) {
        tn_text_printf(out, "; %" PRIu64 " boxes too narrow to draw (%s)", left.boxes,
                       tn_text_size(out, (double)left.bytes).text);
    }
    tn_text_puts(out, "</text>\n");
    tn_text_printf(out,
                   "<text id=\"search\" class=\"b\" x=\"%d\" y=\"64\">search (/)</text>\n"
                   "<text id=\"found\" x=\"%d\" y=\"64\"></text>\n"
                   "<text id=\"reset\" class=\"b\" x=\"%d\" y=\"64\">all (Esc)</text>\n"
                   "<text id=\"line\" x=\"%d\" y=\"82\"></text>\n",
                   MARGIN, 400, WIDTH - MARGIN - 70, MARGIN);
}

void tn_flame_svg_put(struct tn_text_out *out, const struct tn_flame *flame, const char *title,
                      bool root_below)
{
    const unsigned deepest = depth_drawn(flame);

    head_put(out, flame, title);
    notes_put(out, flame);
    for (uint32_t i = 0; i < flame->nodes.count && tn_flame_node(flame, 0)->bytes > 0; i++) {
        const struct tn_flame_node *node = tn_flame_node(flame, i);

        if (is_drawn(flame, node)) {
            box_put(out, flame, node, root_below ? deepest - node->depth : node->depth);
        }
    }
    tn_text_puts(out, script);
    tn_text_puts(out, "</svg>\n");
}
